// Command image writes the OCI image of a built program: 'make image' runs it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"lacuna/internal/durable"
	"lacuna/ops/image"
	"lacuna/ops/supply"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var from image.Sources
	var about image.About
	var seconds int64
	var folder string
	cmd := &cobra.Command{
		Use: "image PROGRAM", Short: "write the OCI image of the program", Args: cobra.ExactArgs(1), SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			from.Program = args[0]
			about.Created = time.Unix(seconds, 0)
			sources, err := supply.FindSources(cmd.Context())
			if err != nil {
				return err
			}
			from.Zones = filepath.Join(sources.GoRoot, "lib", "time", "zoneinfo.zip")
			layers, err := image.Layers(cmd.Context(), from)
			if err != nil {
				return err
			}
			file := filepath.Join(folder, fmt.Sprintf("lacuna_%s_%s.oci.tar", about.Tag(), runtime.GOARCH))
			sum, err := write(file, func(w io.Writer) (digest.Digest, error) { return image.Write(w, layers, about) })
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: lacuna:%s %s\n", file, about.Tag(), sum)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&about.Version, "version", "unversioned", "version of the program")
	f.StringVar(&about.Revision, "revision", "", "commit")
	f.Int64Var(&seconds, "created", 0, "time of the commit, in seconds since 1970")
	f.StringVar(&from.Runtime, "onnxruntime", "", "path of libonnxruntime")
	f.StringVar(&from.Config, "config", "systemd/lacuna.yaml", "configuration with every key at its default")
	f.StringVar(&from.Bill, "bill", "bin/lacuna.cdx.json", "bill of materials")
	f.StringVar(&from.Licences, "licences", "bin/lacuna.licences.txt", "texts of all licences")
	f.StringVar(&from.CAs, "cas", "/etc/ssl/certs/ca-certificates.crt", "certificates of authorities")
	f.StringVar(&folder, "out", "bin", "folder to write to")
	return cmd
}

// write writes a file that is there whole or not at all.
func write(file string, content func(io.Writer) (digest.Digest, error)) (digest.Digest, error) {
	pending, err := durable.Pending(file, 0o644)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", file, err)
	}
	defer pending.Cleanup() //nolint:errcheck // of a file that has its name nothing is left
	sum, err := content(pending)
	if err != nil {
		return "", err
	}
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return "", fmt.Errorf("write %s: %w", file, err)
	}
	return sum, nil
}
