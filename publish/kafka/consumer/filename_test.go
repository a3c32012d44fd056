package consumer_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"lacuna/publish/kafka/consumer"
)

func TestNamesThatFileSystemsDoNotTakeAreShortened(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		in     string
		prefix string // beginning of the result; all of it where the name is unchanged
		same   bool
	}{
		"short":                   {in: "20240409_chl_l4.nc", same: true},
		"at the bound":            {in: strings.Repeat("a", 221) + ".nc", same: true},
		"300 bytes":               {in: strings.Repeat("a", 297) + ".nc", prefix: strings.Repeat("a", 150)},
		"multibyte":               {in: strings.Repeat("海", 100) + ".nc", prefix: strings.Repeat("海", 50)},
		"four bytes":              {in: strings.Repeat("a", 3) + strings.Repeat("🌊", 70) + ".nc", prefix: "aaa🌊"},
		"no ending":               {in: strings.Repeat("a", 300), prefix: "aaa"},
		"long ending":             {in: "a." + strings.Repeat("b", 300), prefix: "a.b"},
		"line break":              {in: "a\nb.nc", prefix: "a_b~"},
		"not UTF-8":               {in: strings.Repeat("\xff", 300) + ".nc"},
		"one long rune and bytes": {in: strings.Repeat("a", 154) + "\xf0\x9f" + strings.Repeat("b", 100) + ".nc", prefix: "aaa"},
	} {
		got := consumer.FileName(c.in)
		switch {
		case c.same && got != c.in:
			t.Errorf("%s: FileName(%q) = %q, want it as it is", name, c.in, got)
		case !c.same && (got == c.in || !strings.HasPrefix(got, c.prefix)):
			t.Errorf("%s: FileName(%q) = %q, want it to begin with %q", name, c.in, got, c.prefix)
		case len(got) > 224 || utf8.ValidString(c.in) && !utf8.ValidString(got):
			t.Errorf("%s: FileName(%q) = %q of %d bytes", name, c.in, got, len(got))
		}
		if strings.HasSuffix(c.in, ".nc") && !strings.HasSuffix(got, ".nc") {
			t.Errorf("%s: %q has lost its ending", name, got)
		}
		if err := os.WriteFile(filepath.Join(dir, got), nil, 0o600); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A name may not be made to look like another that was shortened.
func TestNamesThatDifferHaveFileNamesThatDiffer(t *testing.T) {
	long := strings.Repeat("a", 297) + ".nc"
	names := []string{long, long[1:], "b" + long[1:], long + ".nc", "a\nb.nc", "a_b.nc", "a\tb.nc"}
	for range 3 { // a result may be a name again
		for _, name := range names[:7:7] {
			names = append(names, consumer.FileName(name))
		}
		names = append(names, consumer.FileName(names[len(names)-1]))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]rune, random.IntN(400)+1)
		for i := range text {
			text[i] = []rune("ab~.\n海🌊")[random.IntN(7)]
		}
		names = append(names, string(text))
	}
	from := map[string]string{}
	for _, name := range names {
		got := consumer.FileName(name)
		if other, taken := from[got]; taken && other != name {
			t.Fatalf("%q and %q are both kept as %q", name, other, got)
		}
		from[got] = name
	}
}
