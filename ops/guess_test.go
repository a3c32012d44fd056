package ops

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const rightToken = "0123456789abcdef-secret"

// asker sends tokens to one server.
type asker struct {
	handler http.Handler
	from    string // address of the connection
	via     string // address that a proxy forwards; empty: no proxy
	pass    *http.Cookie
}

func newAsker(t *testing.T) asker {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, rightToken+"\n")
	h, _ := fullHandler(t, file)
	return asker{handler: h, from: "192.0.2.1:999"}
}

func (a asker) ask(t *testing.T, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/actions/retry", strings.NewReader("dataset=sea&granule=x.nc"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+token)
	r.RemoteAddr = a.from
	if a.via != "" {
		r.Header.Set("X-Forwarded-For", a.via)
	}
	if a.pass != nil {
		r.AddCookie(a.pass)
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

func TestGuessesAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, began := newAsker(t), time.Now()
		const tries = 50
		for i := range tries {
			if got := a.ask(t, fmt.Sprint("guess", i)).Code; got != http.StatusUnauthorized {
				t.Fatalf("guess %d is answered %d, want 401", i, got)
			}
		}
		if took, least := time.Since(began), (tries-wrongBurst)*time.Duration(float64(time.Second)/wrongRate); took < least {
			t.Errorf("%d guesses one after another took %v, want at least %v", tries, took, least)
		}
		began = time.Now()
		if got := a.ask(t, rightToken).Code; got != http.StatusOK || time.Since(began) > guessPatience {
			t.Errorf("the right token of the same address after the guesses = %d after %v", got, time.Since(began))
		}
	})
}

// flood sends n tokens at the same moment and returns the number of answers by
// status. The function wait waits for the others.
func flood(t *testing.T, n int, ask func(i int) int) (wait func() map[int]int) {
	var mu sync.Mutex
	answers := map[int]int{}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			status := ask(i)
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
		})
	}
	synctest.Wait()
	return func() map[int]int { wg.Wait(); return answers }
}

func TestManyGuessesAtOnceAreNotChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t)
		guesses := flood(t, 1000, func(i int) int { return a.ask(t, fmt.Sprint("guess", i)).Code })
		// Were these checked, one of them would be found to be right.
		hits := flood(t, 1000, func(int) int { return a.ask(t, rightToken).Code })
		if got := hits(); got[http.StatusTooManyRequests] != 1000 {
			t.Errorf("tokens of one client beyond its limit are answered %v", got)
		}
		if got := guesses(); got[http.StatusUnauthorized] > wrongBurst+mostWaiting {
			t.Errorf("guesses of one client are answered %v", got)
		}
		time.Sleep(time.Hour)
		many := flood(t, 1000, func(i int) int {
			return asker{handler: a.handler, from: fmt.Sprintf("198.51.100.%d:1", i%250)}.ask(t, fmt.Sprint("guess", i)).Code
		})
		if got := many(); got[http.StatusUnauthorized] > globalBurst+int(globalRate*guessPatience.Seconds()) {
			t.Errorf("guesses of many clients are answered %v", got)
		}
	})
}

func TestOthersGuessesDoNotHoldUpTheRightToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guesser := newAsker(t)
		guesser.from, guesser.via = "127.0.0.1:5000", "203.0.113.9"
		member := asker{handler: guesser.handler, from: "127.0.0.1:5001", via: "198.51.100.7"}
		first := member.ask(t, rightToken)
		cookies := first.Result().Cookies()
		if first.Code != http.StatusOK || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
			t.Fatalf("the right token = %d with %v", first.Code, cookies)
		}
		returning := asker{handler: guesser.handler, from: guesser.from, via: guesser.via, pass: cookies[0]}
		forged := asker{handler: guesser.handler, from: guesser.from, via: guesser.via, pass: &http.Cookie{Name: passCookie, Value: "a.b"}}
		guesses := flood(t, 100, func(i int) int { return guesser.ask(t, fmt.Sprint("guess", i)).Code })
		began := time.Now()
		for name, a := range map[string]asker{
			"another client of the same proxy": member, "one with a pass at the guesser's address": returning,
			"a client elsewhere": {handler: guesser.handler, from: "192.0.2.77:1"},
		} {
			if got := a.ask(t, rightToken).Code; got != http.StatusOK || time.Since(began) > 0 {
				t.Errorf("%s gets %d after %v while another guesses", name, got, time.Since(began))
			}
		}
		if got := forged.ask(t, rightToken).Code; got != http.StatusTooManyRequests {
			t.Errorf("a forged pass is answered %d while its address guesses, want 429", got)
		}
		guesses()
		for range 40 { // a script with the right token is not a guesser
			if got := member.ask(t, rightToken).Code; got != http.StatusOK {
				t.Fatalf("the right token again and again = %d", got)
			}
		}
	})
}

func TestClientsAreForgottenAndNetworksCount(t *testing.T) {
	g := newGuesses(time.Now)
	for i := range 3 * mostClients {
		g.client(fmt.Sprint(i))
	}
	if len(g.clients) > mostClients {
		t.Errorf("%d clients are remembered", len(g.clients))
	}
	for _, c := range []struct{ from, via, want string }{
		{"192.0.2.1:5", "203.0.113.9", "192.0.2.1"},
		{"127.0.0.1:5", "198.51.100.1, 203.0.113.9", "203.0.113.9"},
		{"127.0.0.1:5", "rubbish", "127.0.0.1"},
		{"[2001:db8::1:2:3:4]:5", "", "2001:db8::"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.from
		r.Header.Set("X-Forwarded-For", c.via)
		if got := clientAddress(r); got != c.want {
			t.Errorf("client of %+v is %q", c, got)
		}
	}
}
