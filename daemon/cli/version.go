package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	"lacuna/daemon/version"

	"github.com/fhs/go-netcdf/netcdf"
	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "version of this program and of the libraries it writes files with",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := struct {
				Lacuna string `json:"lacuna"`
				Go     string `json:"go"`
				NetCDF string `json:"netcdf"`
			}{version.String(), runtime.Version(), strings.Fields(netcdf.Version())[0]}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(v)
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "lacuna %s (%s, netCDF %s)\n", v.Lacuna, v.Go, v.NetCDF)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
