package ftp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"

	"github.com/jlaffaye/ftp"

	"lacuna/fetch"
	"lacuna/internal/session"
)

// dial connects and logs in.
func (a *Archive) dial(ctx context.Context) (*session.FTP, error) {
	if err := a.politeness.Pacer.Wait(ctx, a.host); err != nil {
		return nil, err
	}
	password, err := a.cfg.Password.Load()
	if err != nil {
		return nil, fmt.Errorf("%w: password: %w", fetch.ErrPermanent, err)
	}
	sent := password
	if password == "" {
		sent = "lacuna@" // anonymous logins take any address; servers check for the sign
	}
	cfg := session.FTPConfig{
		Address: a.cfg.Address, Mode: a.cfg.TLS, EPSV: a.cfg.EPSV, MLSD: a.cfg.MLSD, Timeout: a.cfg.Timeout, Oversize: fetch.ErrUnacceptable, Dial: a.reach,
	}
	if a.cfg.TLS != Clear {
		if cfg.Trust, err = session.TLS(a.cfg.CAFile); err != nil {
			return nil, err
		}
		cfg.Trust.ServerName = a.host
		cfg.Trust.ClientSessionCache = tls.NewLRUClientSessionCache(0) // servers want data connections to resume the session
	}
	s, err := session.DialFTP(ctx, cfg, func(conn *ftp.ServerConn) error {
		if err := conn.Login(a.cfg.User, sent.Reveal()); err != nil {
			return fmt.Errorf("log in at %s: %w", a.cfg.Address, refused(session.NoEOF(err)))
		}
		return nil
	})
	return s, fetch.Scrub(err, password)
}

// bareText is the type of an error that is a text and nothing else.
const bareText = "*errors.errorString"

// refused marks a login that will not succeed next time either. Servers that
// are full use the same code.
func refused(err error) error {
	text := strings.ToLower(err.Error())
	for _, passing := range []string{"maximum", "too many", "later", "unavailable", "timeout", "tls:"} {
		if strings.Contains(text, passing) {
			return err
		}
	}
	var told *textproto.Error
	switch {
	case errors.As(err, &told):
		if told.Code != ftp.StatusNotLoggedIn && told.Code != ftp.StatusInvalidCredentials {
			return err
		}
	case fmt.Sprintf("%T", err) != bareText, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return err
	}
	// The other cases are the two codes, or the bare text of the library for a
	// user that was refused before the password.
	return fmt.Errorf("%w: %w; correct user and password", fetch.ErrPermanent, err)
}
