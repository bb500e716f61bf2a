package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
	"github.com/taintlet/taintlet/test/process"
)

const (
	// NodeName is that of the machine's kubelet.
	NodeName = "host"
	gateway  = "10.0.2.2" // at which the machine finds what listens at 127.0.0.1 here

	namespace = "taintlet-system"
	daemonSet = "taintlet" // and its ConfigMap
)

// Host is a machine that is a Node and runs taintlet's DaemonSet.
type Host struct {
	*Machine
	Cluster *cluster.Cluster
	Nodes   *History
	stop    context.CancelFunc
}

// Start starts a control plane, a machine, its kubelet, and taintlet from the manifests in
// the folder deploy, as they are but for the settings that config replaces. It returns when
// taintlet's pod is ready. The context bounds the start alone.
func Start(ctx context.Context, progress io.Writer, release Release, deploy, config string) (h *Host, err error) {
	from, err := buildImage(ctx, progress, release)
	if err != nil {
		return nil, err
	}
	h = &Host{}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Stop())
		}
	}()
	h.Cluster, err = cluster.Start(ctx, cluster.Options{Progress: progress, Args: map[string][]string{
		// The addresses of the Service kubernetes, which the agent reads, are those of the machine's host.
		cluster.APIServer:         {"--advertise-address=" + gateway, "--endpoint-reconciler-type=lease"},
		cluster.ControllerManager: {"--controllers=*"},
	}})
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	if h.Nodes, err = watch(watching, h.Cluster.Client(), NodeName); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(h.Cluster.LogDir(), "host-") // which is removed even if this process is killed
	if err != nil {
		return nil, err
	}
	cargo, err := h.pack(ctx, progress, dir, deploy)
	if err != nil {
		return nil, err
	}
	if h.Machine, err = startMachine(ctx, dir, release, from, cargo); err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "the machine has booted")
	return h, h.deploy(ctx, deploy, config)
}

// pack makes the folder that the machine has at /cargo.
func (h *Host) pack(ctx context.Context, progress io.Writer, dir, deploy string) (string, error) {
	cargo := filepath.Join(dir, "files")
	if err := os.Mkdir(cargo, 0o755); err != nil {
		return "", err
	}
	bin, err := cluster.Build(ctx, progress, cluster.Kubelet)
	if err != nil {
		return "", err
	}
	version, err := imageVersion(filepath.Join(deploy, "taintlet.yaml"))
	if err != nil {
		return "", err
	}
	if _, err := kubelet.BuildImage(ctx, cargo, version); err != nil {
		return "", err
	}
	if _, err := kubelet.PackSandbox(ctx, cargo); err != nil {
		return "", err
	}
	apiServer, err := url.Parse(h.Cluster.URL())
	if err != nil {
		return "", err
	}
	address := net.JoinHostPort(gateway, apiServer.Port())
	identity, err := h.Cluster.Config("system:node:"+NodeName, "system:nodes")
	if err != nil {
		return "", err
	}
	identity.Host, identity.ServerName = "https://"+address, "kubernetes"
	settings, err := json.Marshal(kubeletConfig())
	if err != nil {
		return "", err
	}
	_, err = process.Output(ctx, dir, nil, "cp", filepath.Join(bin, cluster.Kubelet), cargo)
	return cargo, errors.Join(err,
		cluster.WriteKubeconfig(filepath.Join(cargo, "kubeconfig"), identity),
		os.WriteFile(filepath.Join(cargo, "kubelet.json"), settings, 0o600),
		os.WriteFile(filepath.Join(cargo, "ca.crt"), h.Cluster.Admin().CAData, 0o600),
		os.WriteFile(filepath.Join(cargo, "apiserver"), []byte(address), 0o600))
}

// kubeletConfig is as kubeadm's in what matters here. All thresholds are the kubelet's
// defaults; only the end of a pressure is told sooner.
func kubeletConfig() map[string]any {
	return map[string]any{
		"apiVersion":   "kubelet.config.k8s.io/v1beta1",
		"kind":         "KubeletConfiguration",
		"cgroupDriver": "systemd",
		"failCgroupV1": false, // one machine has them
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": "/cargo/ca.crt"},
		},
		"authorization":                    map[string]any{"mode": "Webhook"},
		"evictionPressureTransitionPeriod": "10s",
	}
}

// imageVersion is the tag of the image in the manifest.
func imageVersion(manifest string) (string, error) {
	objects, err := cluster.ReadManifest(manifest)
	if err != nil {
		return "", err
	}
	for _, object := range objects {
		if object.GetKind() != "DaemonSet" {
			continue
		}
		set := &appsv1.DaemonSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, set); err != nil {
			return "", err
		}
		_, version, _ := strings.Cut(set.Spec.Template.Spec.Containers[0].Image, ":")
		return version, nil
	}
	return "", fmt.Errorf("%s has no DaemonSet", manifest)
}

// deploy installs taintlet and waits until its pod is ready.
func (h *Host) deploy(ctx context.Context, folder, config string) error {
	if _, err := h.Run(ctx, "systemctl start containerd; for archive in /cargo/*.tar; do ctr --connect-timeout=60s --namespace=k8s.io images import $archive || exit; done"); err != nil {
		return err
	}
	if err := h.Cluster.InstallKeep(ctx); err != nil {
		return err
	}
	if err := h.Cluster.Apply(ctx, filepath.Join(folder, "taintlet.yaml")); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"config.yaml": config}})
	if err != nil {
		return err
	}
	maps := h.Cluster.Client().CoreV1().ConfigMaps(namespace)
	if _, err := maps.Patch(ctx, daemonSet, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	_, err = h.Cluster.WaitDaemonSet(ctx, namespace, daemonSet, func(set *appsv1.DaemonSet) bool {
		return set.Status.DesiredNumberScheduled == 1 && set.Status.NumberReady == 1
	})
	if err != nil {
		logs, _ := h.Run(ctx, "journalctl --no-pager -n 40 -u kubelet -u containerd; tail -n 20 /var/log/pods/*/*/*.log")
		return fmt.Errorf("%w\n%s", err, logs)
	}
	return nil
}

// Pod returns taintlet's pod.
func (h *Host) Pod(ctx context.Context) (*corev1.Pod, error) {
	pods, err := h.Cluster.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != 1 {
		return nil, fmt.Errorf("%d pods in %s, want 1", len(pods.Items), namespace)
	}
	return &pods.Items[0], nil
}

// WaitAgent returns when taintlet's container is ready and was started after that moment.
func (h *Host) WaitAgent(ctx context.Context, after time.Time) error {
	pod, err := h.Pod(ctx)
	if err != nil {
		return err
	}
	_, err = h.Cluster.WaitPod(ctx, namespace, pod.Name, func(pod *corev1.Pod) bool {
		for _, container := range pod.Status.ContainerStatuses {
			return container.Ready && container.State.Running != nil && container.State.Running.StartedAt.After(after)
		}
		return false
	})
	return err
}

// Stop ends the machine and the control plane, and removes all files but the image.
func (h *Host) Stop() error {
	if h.stop != nil {
		h.stop()
	}
	var errs []error
	if h.Machine != nil {
		errs = append(errs, h.Machine.Stop())
	}
	if h.Cluster != nil {
		errs = append(errs, h.Cluster.Stop())
	}
	return errors.Join(errs...)
}
