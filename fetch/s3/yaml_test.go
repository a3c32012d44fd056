package s3

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

func TestConfigIsReadFromYAML(t *testing.T) {
	text := `
endpoint: https://s3.example.org
bucket: b
prefix: native
region: eu-west-1
virtual_host: true
access_key: {env: A}
secret_key: {credential: s3-secret}
ca_file: ca.pem
timeout: 5s
page_objects: 10
`
	c := DefaultConfig()
	if err := yaml.NewDecoder(strings.NewReader(text), yaml.Strict()).Decode(&c); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("Validate(): %v", err)
	}
	if c.Web.CAFile != "ca.pem" || c.Web.Timeout != 5*time.Second || c.SecretKey.Credential != "s3-secret" || !c.ETagIsMD5 {
		t.Errorf("read as %+v", c)
	}
	out, err := yaml.Marshal(DefaultConfig())
	if err != nil || !strings.Contains(string(out), "timeout: 1m0s") || strings.Contains(string(out), "query") {
		t.Errorf("written as\n%s%v", out, err)
	}
}
