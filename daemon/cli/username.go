package cli

import (
	"os"
	"os/user"
	"strconv"
	"strings"
)

// UserName returns the name of the user who runs the command, or the number.
func UserName() string {
	if u, err := user.Current(); err == nil && strings.TrimSpace(u.Username) != "" {
		return u.Username
	}
	return "user " + strconv.Itoa(os.Getuid())
}
