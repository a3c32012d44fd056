package fetch

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Secret is a password, key or token. However it is printed, logged or
// encoded, it reads [redacted]; Reveal is the only way to its text.
type Secret string

const redacted = "[redacted]"

// Reveal returns the text, for the one place that sends it.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (s Secret) String() string { return redacted }

// GoString hides the text.
func (s Secret) GoString() string { return redacted }

// Format hides the text from every verb, %x and %q among them.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON hides the text from encoding/json.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalYAML hides the text from YAML encoders.
func (s Secret) MarshalYAML() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue hides the text from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// SecretConfig names the place of a secret. It holds no secret itself, so that
// a configuration file can be shown to anybody. At most one field is set; none
// means that there is no secret.
type SecretConfig struct {
	Env        string `yaml:"env"`        // name of an environment variable
	File       string `yaml:"file"`       // path of a file whose content it is
	Credential string `yaml:"credential"` // name of a systemd credential (LoadCredential=)
}

// IsZero reports whether no place is named.
func (c SecretConfig) IsZero() bool { return c == SecretConfig{} }

// Validate reports the faults of c without looking at the places it names.
func (c SecretConfig) Validate() error {
	named := 0
	for _, place := range []string{c.Env, c.File, c.Credential} {
		if place != "" {
			named++
		}
	}
	switch {
	case named > 1:
		return errors.New("env, file and credential exclude one another; keep one")
	case c.Credential != "" && c.Credential != filepath.Base(c.Credential):
		return fmt.Errorf("credential is %q, must be a plain name as in LoadCredential=name:path", c.Credential)
	}
	return nil
}

// Load reads the secret. It is read anew at each use, so that a changed
// password is taken up without a restart. White space at the end of a file is
// no part of it. Where no place is named the secret is empty; where a place is
// named but has nothing, Load fails.
func (c SecretConfig) Load() (Secret, error) {
	switch {
	case c.Env != "":
		if s := os.Getenv(c.Env); s != "" {
			return Secret(s), nil
		}
		return "", fmt.Errorf("environment variable %s is empty; set it or name another place", c.Env)
	case c.File != "":
		return ReadSecretFile(c.File)
	case c.Credential != "":
		dir := os.Getenv("CREDENTIALS_DIRECTORY")
		if dir == "" {
			return "", fmt.Errorf("no systemd credentials for %s; add LoadCredential=%s:PATH to the unit", c.Credential, c.Credential)
		}
		return ReadSecretFile(filepath.Join(dir, c.Credential))
	}
	return "", nil
}

// Scrub returns err with the text of secrets taken out of its message, also
// where they are escaped as in a URL or encoded as in a basic authorization:
// servers echo their input. Is and As still see err.
func Scrub(err error, secrets ...Secret) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, s := range secrets {
		if s == "" {
			continue
		}
		for _, form := range []string{
			string(s), url.QueryEscape(string(s)), url.PathEscape(string(s)),
			base64.StdEncoding.EncodeToString([]byte(s)), fmt.Sprintf("%q", string(s)),
		} {
			text = strings.ReplaceAll(text, form, redacted)
		}
	}
	if text == err.Error() {
		return err
	}
	return &scrubbed{text: text, err: err}
}

type scrubbed struct {
	text string
	err  error
}

func (s *scrubbed) Error() string { return s.text }

// Is lets errors.Is compare with the original, which itself stays out of reach.
func (s *scrubbed) Is(target error) bool { return errors.Is(s.err, target) }

// As lets callers find how long to wait, and nothing that holds a message.
func (s *scrubbed) As(target any) bool {
	after, ok := target.(**RetryAfterError)
	if !ok {
		return false
	}
	var found *RetryAfterError
	if !errors.As(s.err, &found) {
		return false
	}
	*after = &RetryAfterError{After: found.After, Err: s}
	return true
}
