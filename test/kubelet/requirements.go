package kubelet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// networkPlugins is where Debian has the plugins of the Container Network
// Interface.
const networkPlugins = "/usr/lib/cni"

// checkHost says all that is missing at once, and how to get it.
func checkHost() error {
	if os.Geteuid() != 0 {
		return errors.New("it needs root")
	}
	packages := map[string]string{
		"containerd": "containerd",
		"runc":       "runc",
		"mkfs.ext4":  "e2fsprogs",
		"mount":      "mount",
	}
	var missing, install []string
	for _, program := range []string{"containerd", "runc", "mkfs.ext4", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			missing, install = append(missing, program), append(install, packages[program])
		}
	}
	if _, err := os.Stat(filepath.Join(networkPlugins, "ptp")); err != nil {
		missing, install = append(missing, networkPlugins), append(install, "containernetworking-plugins")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("this host lacks %s; on Debian: apt-get install -y %s",
		strings.Join(missing, ", "), strings.Join(install, " "))
}
