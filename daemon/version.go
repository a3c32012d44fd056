package daemon

import "runtime/debug"

// buildVersion is set by the linker (see Makefile).
var buildVersion string

// Version returns the version of this build.
func Version() string {
	if buildVersion != "" {
		return buildVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
