package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// configVariable names the configuration of commands that are not given one.
const configVariable = "LACUNA_CONFIG"

// usualConfigs are the configurations that commands look for: that of the folder
// one works in, then that of the service.
var usualConfigs = []string{"lacuna.yaml", "/etc/lacuna/lacuna.yaml"}

// AddConfig adds the flag that names the configuration.
func AddConfig(f *pflag.FlagSet, config *string) {
	f.StringVarP(config, "config", "c", "", "configuration `FILE` (default: $"+configVariable+", else ./"+strings.Join(usualConfigs, ", else ")+")")
}

// FindConfig completes the value of that flag, so that every remedy can be typed as
// it stands.
func FindConfig(config *string) error {
	if *config != "" {
		return nil
	}
	if *config = os.Getenv(configVariable); *config != "" {
		return nil
	}
	for _, path := range usualConfigs {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) { // one that cannot be read is an error, and not another file
			*config = path
			return nil
		}
	}
	return Usage(errors.New("there is no configuration: --config FILE, $" + configVariable + ", ./" + strings.Join(usualConfigs, " or ") +
		"; 'lacuna init' writes one"))
}
