package cmems

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/web"
)

// checkEvery is the validity of a login check: the service asks its clients not
// to log in for every download.
const checkEvery = 24 * time.Hour

// login checks the credentials where that was not done today. Refused or
// missing ones are permanent. A login service that is down is not waited for:
// files can be read without it.
func (a *Archive) login(ctx context.Context) error {
	if err := a.enter(ctx); err != nil {
		return err
	}
	defer a.leave()
	if !a.cfg.Login || !a.checked.IsZero() && time.Since(a.checked) < checkEvery {
		return nil
	}
	user, password, err := a.credentials()
	if err != nil {
		return fmt.Errorf("%w: %w", fetch.ErrPermanent, err)
	}
	name, err := a.check(ctx, user, password)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fetch.ErrPermanent):
		a.checked = time.Time{}
		return fmt.Errorf("log in to Copernicus Marine: %w; correct user and password", err)
	case err != nil:
		a.authErr = err // asked again at the next listing
		return nil
	}
	if a.user != name && a.current != nil {
		a.current.read = time.Time{} // its places do not know the name
	}
	a.user, a.checked, a.authErr = name, time.Now(), nil
	return nil
}

// check logs in and returns the name of the user.
func (a *Archive) check(ctx context.Context, user string, password fetch.Secret) (string, error) {
	form := url.Values{
		"client_id": {"toolbox"}, "grant_type": {"password"}, "scope": {"openid profile email"},
		"username": {user}, "password": {password.Reveal()},
	}
	var token struct {
		AccessToken fetch.Secret `json:"access_token"`
	}
	err := a.ask(ctx, "/token", form, password, &token)
	var status *web.StatusError
	if errors.As(err, &status) && status.Code == http.StatusBadRequest && strings.Contains(status.Body, "invalid_grant") {
		return "", fmt.Errorf("%w: %w", fetch.ErrPermanent, err) // the answer to a closed account
	}
	if err != nil {
		return "", err
	}
	var info struct {
		User string `json:"preferred_username"`
	}
	if err := a.ask(ctx, "/userinfo", nil, token.AccessToken, &info); err != nil {
		return "", err
	}
	if info.User == "" {
		return user, nil
	}
	return info.User, nil
}

// ask posts a form to the login service, or gets something with a token where
// there is no form.
func (a *Archive) ask(ctx context.Context, path string, form url.Values, secret fetch.Secret, to any) error {
	address := strings.TrimRight(a.cfg.AuthURL, "/") + "/protocol/openid-connect" + path
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else {
		req.Header.Set("Authorization", "Bearer "+secret.Reveal())
	}
	resp, err := a.client.Do(req, secret)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const enough = 1 << 20 // a token has a few kilobytes
	if err := json.NewDecoder(io.LimitReader(resp.Body, enough)).Decode(to); err != nil {
		return fmt.Errorf("read answer of %s: %w", web.Shown(req.URL), noEOF(err))
	}
	return nil
}

// credentials returns user and password of the configuration, or else those of
// the user's Copernicus Marine toolbox: its environment variables, then its
// file.
func (a *Archive) credentials() (user string, password fetch.Secret, err error) {
	if a.cfg.User != "" {
		password, err = a.cfg.Password.Load()
		if err == nil && password == "" {
			err = errors.New("user is set and password is not; name the env, file or credential that holds it")
		}
		return a.cfg.User, password, err
	}
	user, password = os.Getenv("COPERNICUSMARINE_SERVICE_USERNAME"), fetch.Secret(os.Getenv("COPERNICUSMARINE_SERVICE_PASSWORD"))
	if user != "" && password != "" {
		return user, password, nil
	}
	home := os.Getenv("COPERNICUSMARINE_CREDENTIALS_DIRECTORY")
	if home == "" {
		if home, err = os.UserHomeDir(); err != nil {
			return "", "", errNoCredentials
		}
	}
	content, err := os.ReadFile(filepath.Join(home, ".copernicusmarine", ".copernicusmarine-credentials"))
	if errors.Is(err, os.ErrNotExist) {
		return "", "", errNoCredentials
	}
	if err != nil {
		return "", "", fmt.Errorf("read credentials: %w", err)
	}
	return parseCredentials(content)
}

var errNoCredentials = errors.New("no Copernicus Marine credentials: give user and password, set COPERNICUSMARINE_SERVICE_USERNAME and _PASSWORD, run copernicusmarine login, or set login to false")

// parseCredentials reads the toolbox's file, an INI section in base64.
func parseCredentials(content []byte) (user string, password fetch.Secret, err error) {
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(content)))
	if err != nil {
		return "", "", errors.New("the credentials file cannot be decoded; run copernicusmarine login to write it anew")
	}
	for lines := bufio.NewScanner(strings.NewReader(string(plain))); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		switch strings.TrimSpace(key) {
		case "username":
			user = strings.TrimSpace(value)
		case "password":
			password = fetch.Secret(strings.TrimSpace(value))
		}
	}
	if user == "" || password == "" {
		return "", "", errors.New("the credentials file has no user or no password; run copernicusmarine login to write it anew")
	}
	return user, password, nil
}
