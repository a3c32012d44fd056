package stac

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"lacuna/fetch"
	"lacuna/fetch/web"
)

// auth holds the credentials of requests, each for hosts of its own.
type auth struct {
	api   *url.URL
	hosts []string
	token fetch.Secret
	netrc map[string]account
}

// account is what .netrc has of a host.
type account struct {
	user     string
	password fetch.Secret
}

// auth reads the secrets anew, for they may have been changed.
func (a *Archive) auth() (auth, error) {
	token, err := a.cfg.Token.Load()
	if err != nil {
		return auth{}, fmt.Errorf("%w: token: %w", fetch.ErrPermanent, err)
	}
	out := auth{api: &a.root, hosts: a.cfg.TokenHosts, token: token}
	if a.cfg.Netrc != "" {
		text, err := fetch.ReadSecretFile(a.cfg.Netrc)
		if err != nil {
			return auth{}, fmt.Errorf("%w: netrc: %w", fetch.ErrPermanent, err)
		}
		out.netrc = parseNetrc(text.Reveal())
	}
	return out, nil
}

// sign adds the credentials that belong to the host of a request, if any do.
func (a auth) sign(req *http.Request) {
	host := strings.ToLower(req.URL.Hostname())
	switch account, named := a.netrc[host]; {
	case a.token != "" && (web.SameOrigin(a.api, req.URL) || among(a.hosts, req.URL)):
		req.Header.Set("Authorization", "Bearer "+a.token.Reveal())
	case named:
		req.SetBasicAuth(account.user, account.password.Reveal())
	}
}

// signed is sign for requests of objects.
func (a auth) signed(req *http.Request) error {
	a.sign(req)
	return nil
}

// secrets are the secrets, and their form in a basic authorization.
func (a auth) secrets() []fetch.Secret {
	secrets := []fetch.Secret{a.token}
	for _, account := range a.netrc {
		secrets = append(secrets, account.password, fetch.Secret(account.user+":")+account.password)
	}
	return secrets
}

// parseNetrc returns the accounts of a .netrc by their hosts, in lower case.
// The entry "default" is left out: nobody has said which hosts it is for. The
// first entry of a host counts, as in curl; macros are skipped.
func parseNetrc(text string) map[string]account {
	accounts := map[string]account{}
	var host string
	var entry account
	keep := func() {
		if _, taken := accounts[host]; host != "" && !taken {
			accounts[host] = entry
		}
		host, entry = "", account{}
	}
	macro := false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if macro = macro && len(words) > 0; macro {
			continue
		}
		for i := 0; i < len(words); i++ {
			if strings.HasPrefix(words[i], "#") {
				break
			}
			value := ""
			if i+1 < len(words) {
				value = strings.Trim(words[i+1], `"`)
			}
			switch words[i] {
			case "machine":
				keep()
				host = strings.ToLower(value)
			case "default":
				keep()
				continue // has no value
			case "login":
				entry.user = value
			case "password":
				entry.password = fetch.Secret(value)
			case "macdef":
				macro = true
			}
			i++
		}
	}
	keep()
	return accounts
}
