package daemon

import (
	"errors"
	"fmt"

	"lacuna/fetch"
	"lacuna/ops"
	"lacuna/pipeline/trusted"
)

// machine lends the status page and the alarms programs that nobody else may
// change and secrets that nobody else may read.
func machine() ops.Machine {
	return ops.Machine{
		Program: trusted.Program,
		Secret: func(path string) (string, error) {
			s, err := fetch.ReadSecretFile(path)
			return s.Reveal(), err
		},
	}
}

// checkSecretFiles refuses files of the sinks that others may read or change.
// The sinks read them by themselves, with what the libraries have for it.
func (p Publish) checkSecretFiles() error {
	files := map[string]string{}
	if p.Kafka != nil && !p.Kafka.Embedded {
		files["publish.kafka.sasl.password_file"] = p.Kafka.SASL.PasswordFile
		files["publish.kafka.tls.key_file"] = p.Kafka.TLS.KeyFile
	}
	if p.S3 != nil {
		files["publish.s3.credentials_file"] = p.S3.CredentialsFile
	}
	return CheckSecretFiles(files)
}

// CheckSecretFiles refuses files that others may read or change, by the key of
// the configuration or the flag that names each. An empty path is none; a file
// that is missing is for whoever reads it to report.
func CheckSecretFiles(files map[string]string) error {
	var errs []error
	for key, path := range files {
		if path == "" {
			continue
		}
		if err := fetch.CheckSecretFile(path); errors.Is(err, fetch.ErrExposed) {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}
