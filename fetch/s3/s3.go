// Package s3 is the archive that is a bucket, or a part of one, on any host
// that speaks S3.
//
// Requests are unsigned, or signed where keys are given. A download names the
// version that was listed, so that an object replaced meanwhile is noticed and
// a broken download goes on where it stopped. The tag of an object that was
// uploaded in one piece is its MD5 and is passed on as such, and so is a
// SHA-256 that was uploaded with it.
//
// Package s3 only reads, and knows nothing of the content of objects.
package s3

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7/pkg/signer"

	"lacuna/fetch"
	"lacuna/fetch/web"
	"lacuna/internal/faults"
)

// Config is the place of the bucket and the way to reach it.
type Config struct {
	Endpoint     string             `yaml:"endpoint"`      // scheme and host, as in https://s3.example.org
	Region       string             `yaml:"region"`        // part of a signature
	Bucket       string             `yaml:"bucket"`        // bucket of the granules
	Prefix       string             `yaml:"prefix"`        // the folder that is the root; empty: the whole bucket
	VirtualHost  bool               `yaml:"virtual_host"`  // the bucket is part of the host name, not of the path
	ETagIsMD5    bool               `yaml:"etag_is_md5"`   // tags of objects uploaded in one piece are MD5 hashes; not so on encrypted buckets
	AccessKey    fetch.SecretConfig `yaml:"access_key"`    // empty: requests are not signed
	SecretKey    fetch.SecretConfig `yaml:"secret_key"`    // belongs to access_key
	SessionToken fetch.SecretConfig `yaml:"session_token"` // token of temporary keys
	Web          web.Config         `yaml:",inline"`       //
	PageObjects  int                `yaml:"page_objects"`  // objects a page of a listing
	MaxObjects   int                `yaml:"max_objects"`   // a listing with more entries is cut and is an error
	Query        map[string]string  `yaml:"-"`             // added to every request
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Region:      "us-east-1", // expected by hosts without regions
		ETagIsMD5:   true,
		PageObjects: 1000,    // the most that S3 gives
		MaxObjects:  200_000, // sixty years of nine products a day; more means a wrong prefix
		Web:         web.DefaultConfig(),
	}
}

// Validate reports everything wrong with c; messages begin with the key.
func (c Config) Validate() error {
	var errs faults.List
	u, err := url.Parse(c.Endpoint)
	errs.Check(err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"),
		"endpoint is %q, must be like https://s3.example.org", safe(u))
	errs.Check(err != nil || u.User == nil, "endpoint holds a user; give access_key and secret_key")
	errs.Check(c.Bucket != "" && !strings.Contains(c.Bucket, "/"), "bucket is %q, must be a name without slashes", c.Bucket)
	errs.Check(!strings.HasPrefix(c.Prefix, "/"), "prefix is %q, must not begin with a slash", c.Prefix)
	errs.Check(c.PageObjects >= 1 && c.PageObjects <= 1000, "page_objects is %d, must be 1 to 1000", c.PageObjects)
	errs.Check(c.MaxObjects > 0, "max_objects is %d, must be positive", c.MaxObjects)
	errs.Check(c.AccessKey.IsZero() == c.SecretKey.IsZero(), "access_key and secret_key go together")
	errs.Check(c.AccessKey.IsZero() || c.Region != "", "region is empty, requests cannot be signed")
	for key, secret := range map[string]fetch.SecretConfig{
		"access_key": c.AccessKey, "secret_key": c.SecretKey, "session_token": c.SessionToken,
	} {
		err := secret.Validate()
		errs.Check(err == nil, "%s: %w", key, err)
	}
	errs.Add(c.Web.Validate())
	return errs.Err()
}

func safe(u *url.URL) string {
	if u == nil {
		return ""
	}
	return web.Shown(u)
}

// Archive is a bucket, or the part of one below a prefix.
type Archive struct {
	cfg    Config
	base   url.URL // address of the bucket, without a slash at its end
	prefix string  // empty, or ends in a slash
	client *web.Client
}

// New returns the archive of cfg. It checks cfg and touches neither the network
// nor the disk.
func New(cfg Config, politeness fetch.Politeness) (*Archive, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("s3 config: %w", err)
	}
	base, err := url.Parse(strings.TrimRight(cfg.Endpoint, "/"))
	if err != nil {
		return nil, fmt.Errorf("s3 config: %w", err)
	}
	if cfg.VirtualHost {
		base.Host = cfg.Bucket + "." + base.Host
	} else {
		base.Path += "/" + cfg.Bucket
	}
	prefix := strings.TrimRight(cfg.Prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Archive{cfg: cfg, base: *base, prefix: prefix, client: web.New(cfg.Web, politeness)}, nil
}

// Open returns the bytes of o from offset on.
func (a *Archive) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	keys, err := a.keys()
	if err != nil {
		return nil, err
	}
	sign := func(req *http.Request) error {
		req.Header.Set("X-Amz-Checksum-Mode", "ENABLED")
		return keys.sign(req)
	}
	src, err := a.client.Open(ctx, web.Get{
		URL: a.at(a.prefix+o.Name, nil), Object: o, Offset: offset, Sign: sign, Secrets: keys.secrets(), Digest: digest,
	})
	return src, explain(err)
}

// digest returns the SHA-256 that was uploaded with an object, in hex. The hash
// of hashes of an object in parts is left out.
func digest(h http.Header) string {
	if kind := h.Get("X-Amz-Checksum-Type"); kind != "" && kind != "FULL_OBJECT" {
		return ""
	}
	sum, err := base64.StdEncoding.DecodeString(h.Get("X-Amz-Checksum-Sha256"))
	if err != nil || len(sum) != sha256.Size {
		return ""
	}
	return hex.EncodeToString(sum)
}

// at returns the URL of a key, or of the bucket where key is empty.
func (a *Archive) at(key string, query url.Values) *url.URL {
	u := a.base
	u.RawPath = escape(u.Path) + "/" + escape(key)
	u.Path += "/" + key
	if query == nil {
		query = url.Values{}
	}
	for name, value := range a.cfg.Query {
		query.Set(name, value)
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // the form that signatures need
	return &u
}

// escape encodes every byte of a path but those that S3 signs as they are.
func escape(path string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0
		if plain {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// keys sign requests; where access is empty, requests are not signed.
type keys struct {
	access, secret, session fetch.Secret
	region                  string
}

// keys reads the keys anew, for they may have been changed.
func (a *Archive) keys() (keys, error) {
	k := keys{region: a.cfg.Region}
	for _, part := range []struct {
		key  string
		from fetch.SecretConfig
		to   *fetch.Secret
	}{
		{"access_key", a.cfg.AccessKey, &k.access},
		{"secret_key", a.cfg.SecretKey, &k.secret},
		{"session_token", a.cfg.SessionToken, &k.session},
	} {
		secret, err := part.from.Load()
		if err != nil {
			return keys{}, fmt.Errorf("%w: %s: %w", fetch.ErrPermanent, part.key, err)
		}
		*part.to = secret
	}
	return k, nil
}

func (k keys) secrets() []fetch.Secret { return []fetch.Secret{k.access, k.secret, k.session} }

// emptySHA256 is the hash of an empty body, such as that of a GET.
const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func (k keys) sign(req *http.Request) error {
	if k.access == "" {
		return nil
	}
	req.Header.Set("X-Amz-Content-Sha256", emptySHA256)
	signed := signer.SignV4(*req, k.access.Reveal(), k.secret.Reveal(), k.session.Reveal(), k.region)
	req.Header = signed.Header
	return nil
}
