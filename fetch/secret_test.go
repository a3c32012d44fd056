package fetch

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestSecretIsNeverShown(t *testing.T) {
	const planted = "pa$$ word/ü"
	type holder struct {
		User     string
		Password Secret
	}
	h := holder{User: "me", Password: planted}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&out, verb+"\n"+verb+"\n"+verb+"\n", h.Password, h, &h)
	}
	js, err := json.Marshal(map[string]any{"h": h, "p": []Secret{planted}})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(js)
	ya, err := yaml.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(ya)
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(handler).Info("line", "password", h.Password, "holder", h)
	}
	for _, form := range []string{planted, fmt.Sprintf("%x", planted), fmt.Sprintf("%X", planted), fmt.Sprintf("%q", planted), "pa$$"} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the secret is shown as %q in:\n%s", form, out.String())
		}
	}
	if h.Password.Reveal() != planted {
		t.Error("Reveal() does not return the secret")
	}
}

func TestSecretIsLoadedFromItsPlace(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"password": "from file \r\n\n", "empty": "\n", "large": strings.Repeat("x", maxSecretBytes+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SECRET_TEST", "from environment")
	t.Setenv("SECRET_TEST_EMPTY", "")
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	for _, tt := range []struct {
		name string
		cfg  SecretConfig
		want string
		err  string
	}{
		{"nowhere", SecretConfig{}, "", ""},
		{"environment", SecretConfig{Env: "SECRET_TEST"}, "from environment", ""},
		{"empty environment", SecretConfig{Env: "SECRET_TEST_EMPTY"}, "", "SECRET_TEST_EMPTY"},
		{"file", SecretConfig{File: filepath.Join(dir, "password")}, "from file", ""},
		{"empty file", SecretConfig{File: filepath.Join(dir, "empty")}, "", "empty"},
		{"no file", SecretConfig{File: filepath.Join(dir, "absent")}, "", "absent"},
		{"a folder", SecretConfig{File: dir}, "", "not a file"},
		{"a large file", SecretConfig{File: filepath.Join(dir, "large")}, "", "at most"},
		{"systemd credential", SecretConfig{Credential: "password"}, "from file", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.cfg.Load()
			if got.Reveal() != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Load() = %q, %v; want %q, %q", got.Reveal(), err, tt.want, tt.err)
			}
		})
	}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	if _, err := (SecretConfig{Credential: "password"}).Load(); err == nil || !strings.Contains(err.Error(), "LoadCredential") {
		t.Errorf("Load() outside systemd = %v, want a message with the remedy", err)
	}
	for _, cfg := range []SecretConfig{{Env: "A", File: "b"}, {Credential: "../x"}} {
		if cfg.Validate() == nil {
			t.Errorf("%+v is valid", cfg)
		}
	}
}

func TestScrubTakesSecretsOutAndLeavesTheKind(t *testing.T) {
	secret := Secret("s3cr3t& more")
	forms := strings.Join([]string{
		string(secret), url.QueryEscape(string(secret)), url.PathEscape(string(secret)),
		base64.StdEncoding.EncodeToString([]byte(secret)),
	}, " ")
	cause := fmt.Errorf("%w: %w: server said %s", ErrPermanent, fs.ErrNotExist, forms)
	err := Scrub(fmt.Errorf("list: %w", &RetryAfterError{After: 5, Err: cause}), secret, "")
	if text := fmt.Sprintf("%v %+v %#v", err, err, errors.Unwrap(err)); strings.Contains(text, "s3cr3t") || strings.Contains(text, "czNjcjN0") {
		t.Errorf("the secret is still there: %s", text)
	}
	var after *RetryAfterError
	if !errors.Is(err, ErrPermanent) || !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &after) || after.After != 5 {
		t.Errorf("%v no longer wraps its cause", err)
	}
	if strings.Contains(after.Error(), "s3cr3t") {
		t.Errorf("the secret is in the error that As finds: %v", after)
	}
	clean := errors.New("nothing in it")
	if got := Scrub(clean, secret); got != clean { //nolint:errorlint // the very same is wanted
		t.Errorf("Scrub() changed an error without secrets: %v", got)
	}
	if Scrub(nil, secret) != nil {
		t.Error("Scrub(nil) is an error")
	}
}
