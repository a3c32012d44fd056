package supply

import (
	"context"
	"fmt"
	"strings"
)

// Gather collects the parts of a built program, but for its version. The
// program's own licence is that of the working directory, the top of the
// repository. Without a path of libonnxruntime none is listed.
func Gather(ctx context.Context, program, runtime, starters string) (Parts, error) {
	var parts Parts
	var err error
	if parts.Program, err = Read(program); err != nil {
		return Parts{}, err
	}
	if parts.SHA256, err = Sum(program); err != nil {
		return Parts{}, err
	}
	sources, err := FindSources(ctx)
	if err != nil {
		return Parts{}, err
	}
	classifier, err := NewClassifier()
	if err != nil {
		return Parts{}, err
	}
	if parts.Own, err = classifier.Licences("."); err != nil {
		return Parts{}, fmt.Errorf("licence of the program: %w", err)
	}
	var faults []string
	if parts.Licences, faults = Licences(parts.Program, sources, classifier); len(faults) > 0 {
		return Parts{}, fmt.Errorf("licences: %s", strings.Join(faults, "; "))
	}
	loaders := []string{program}
	if runtime != "" {
		loaders = append(loaders, runtime)
	}
	if parts.Libraries, err = Libraries(ctx, loaders...); err != nil {
		return Parts{}, err
	}
	if parts.Files, err = Starters(starters); err != nil {
		return Parts{}, err
	}
	if runtime != "" {
		file, err := ONNXRuntime(runtime)
		if err != nil {
			return Parts{}, err
		}
		parts.Files = append(parts.Files, file)
	}
	return parts, nil
}
