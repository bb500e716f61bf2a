package kubelet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/taintlet/taintlet/test/cluster"
)

const (
	loopback = "127.0.0.1"

	// Where kubelet and containerd have their files, in the room.
	rootDir          = "/var/lib/kubelet"
	containerdDir    = "/var/lib/containerd"
	containerdState  = "/run/containerd"
	containerdSocket = containerdState + "/containerd.sock"

	// Files in the Kubelet's folder.
	configFile     = "config.json"
	clientCAFile   = "clients.crt"
	kubeconfigFile = "kubeconfig"
	containerdFile = "containerd.toml"
	networkDir     = "net.d"
)

// writeFiles writes all that kubelet and containerd read at start.
func (k *Kubelet) writeFiles() error {
	identity, err := k.cluster.Config("system:node:"+k.NodeName, "system:nodes")
	if err != nil {
		return err
	}
	if err := cluster.WriteKubeconfig(k.file(kubeconfigFile), identity); err != nil {
		return err
	}
	config, err := json.MarshalIndent(k.config(), "", "  ")
	if err != nil {
		return err
	}
	if err := os.Mkdir(k.file(networkDir), 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		configFile:     config,
		clientCAFile:   k.cluster.Admin().CAData,
		containerdFile: []byte(k.containerdConfig()),
		filepath.Join(networkDir, "10-ptp.conflist"): []byte(network),
	} {
		if err := os.WriteFile(k.file(name), content, 0o600); err != nil {
			return fmt.Errorf("write the kubelet's files: %w", err)
		}
	}
	return nil
}

// config is the KubeletConfiguration.
func (k *Kubelet) config() map[string]any {
	config := map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"address":                  loopback,
		"port":                     json.Number(k.port),
		"healthzBindAddress":       loopback,
		"healthzPort":              json.Number(k.health),
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"volumePluginDir":          filepath.Join(rootDir, "volume-plugins"),
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": k.file(clientCAFile)},
		},
		"authorization":               map[string]any{"mode": "Webhook"},
		"cgroupDriver":                "cgroupfs",
		"failCgroupV1":                false,
		"failSwapOn":                  false,
		"enforceNodeAllocatable":      []string{},
		"imageGCHighThresholdPercent": 100,   // a full disk is part of tests, and no registry has their images
		"makeIPTablesUtilChains":      false, // they would be the host's
		"resolvConf":                  "",    // the host's may be in its /run, which the room has not
	}
	if k.options.KernelMemcgNotification {
		config["kernelMemcgNotification"] = true
	}
	if k.options.EvictionHard != nil {
		config["evictionHard"] = k.options.EvictionHard
	}
	if period := k.options.EvictionPressureTransitionPeriod; period > 0 {
		config["evictionPressureTransitionPeriod"] = period.String()
	}
	if period := k.options.NodeStatusUpdateFrequency; period > 0 {
		config["nodeStatusUpdateFrequency"] = period.String()
	}
	if period := k.options.SyncFrequency; period > 0 {
		config["syncFrequency"] = period.String()
	}
	return config
}

// containerdConfig has paths of the room, and an out-of-memory score that a
// host without CAP_SYS_RESOURCE lets containers have.
func (k *Kubelet) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = %q
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = %q
  conf_dir = %q
`, containerdDir, containerdState, containerdSocket, SandboxImage, networkPlugins, k.file(networkDir))
}

// network gives each pod a pair of interfaces that vanishes with it, and the
// host nothing besides.
const network = `{
  "cniVersion": "0.4.0",
  "name": "taintlet-test",
  "plugins": [{
    "type": "ptp",
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.97.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`
