package version

import (
	"regexp"
	"testing"
)

func TestOnlyABuildOfItsTagIsTheRelease(t *testing.T) {
	for name, c := range map[string]struct{ tag, commit, want string }{
		"its tag":                      {"v" + release, "abc1234", release},
		"another tag":                  {"v0.0.1", "abc1234", release + "-dev+gabc1234"},
		"no tag":                       {"", "abc1234", release + "-dev+gabc1234"},
		"a tree that is not its tag's": {"", "abc1234.dirty", release + "-dev+gabc1234.dirty"},
		"a tag without its v":          {release, "", release + "-dev"},
		"neither":                      {"", "", release + "-dev"},
	} {
		t.Run(name, func(t *testing.T) {
			got := versionOf(c.tag, c.commit)
			if got != c.want {
				t.Errorf("versionOf(%q, %q) = %q, want %q", c.tag, c.commit, got, c.want)
			}
			// The expression that semver.org gives, without its groups.
			semantic := regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
			if !semantic.MatchString(got) {
				t.Errorf("%q is no semantic version", got)
			}
		})
	}
}
