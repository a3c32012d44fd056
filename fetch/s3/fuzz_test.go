package s3

import (
	"strings"
	"testing"

	"lacuna/fetch"
)

// FuzzPage feeds arbitrary bytes to the reader of listings: what is listed lies
// below the root, once, has a name, and is no more than was asked for.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`<ListBucketResult><Contents><Key>chl/2024/a.nc</Key><Size>5</Size><LastModified>2024-05-17T12:00:00Z</LastModified><ETag>"d41d8cd98f00b204e9800998ecf8427e"</ETag></Contents></ListBucketResult>`))
	f.Add([]byte(`<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken><Contents><Key>chl/2024/%2e%2e%2Fb.nc</Key></Contents><CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes></ListBucketResult>`))
	f.Add([]byte(`<Error><Code>AccessDenied</Code></Error>`))
	const most = 3
	cfg := DefaultConfig()
	cfg.Endpoint, cfg.Bucket, cfg.Prefix, cfg.MaxObjects = "http://127.0.0.1:1", "b", "chl", most
	a, err := New(cfg, fetch.Politeness{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		p, err := readPage(strings.NewReader(string(answer)), fetch.Scope{}.Bound("max_objects", most))
		if err != nil {
			return
		}
		if len(p.contents) > most {
			t.Errorf("%d objects were read, at most %d are asked for", len(p.contents), most)
		}
		names := map[string]bool{}
		objects, _ := a.objects(p, "2024/", names)
		seen := map[string]bool{}
		for _, o := range objects {
			if o.Name == "" || seen[o.Name] || !strings.HasPrefix(o.Name, "2024/") || fetch.Unfinished(o.Name) {
				t.Errorf("the listing has %q", o.Name)
			}
			if o.MD5 != "" && len(o.MD5) != 32 {
				t.Errorf("%q has the MD5 %q", o.Name, o.MD5)
			}
			seen[o.Name] = true
		}
	})
}
