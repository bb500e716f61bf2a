package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
)

const (
	// nodeName leads to the kubelet, which listens on loopback: the API server asks it by
	// name for the logs of pods.
	nodeName = "localhost"
	// fullPercent of the disk leave less than the 10 % that the agent asks for.
	fullPercent = 95
	// patience is far above what a busy machine needs.
	patience = 5 * time.Minute
)

// TestInstallsFromItsFiles installs, upgrades, rolls back and uninstalls two releases of
// HEAD on a real control plane and kubelet, with their files, containerd's ctr, helm and
// nothing else. From the first taint until helm uninstall, each version of the Node has the
// taint and the record of it.
func TestInstallsFromItsFiles(t *testing.T) {
	requireRelease(t)
	if !cluster.Required("kubelet") {
		t.Skip("installs a release on a real kubelet: set TAINTLET_REQUIRE=controlplane,kubelet,release")
	}
	first, second := built(t, "0.1.0").unpacked(t), built(t, "0.1.1").unpacked(t)
	i := newInstallation(t, first, second)

	install, unpackAndCheck, _ := strings.Cut(bed.Scripts(t, "docs/release.md")[1], "\n")
	i.script(first, install) // the page's version is the first release's
	i.runs(first)
	i.serveDNS()
	i.wait(cluster.HasCondition("HostDiskPressure", corev1.ConditionFalse))
	if said := i.script(first, unpackAndCheck); !noneFailed.MatchString(said) {
		t.Errorf("the commands of docs/release.md end with\n%s", said)
	}

	i.fillDisk()
	tainted := i.wait(hasTaint)
	history := i.follow(tainted)
	i.wait(cluster.HasCondition("HostDiskPressure", corev1.ConditionTrue)) // written after the taint
	for _, step := range []struct {
		args []string
		to   download
	}{
		{[]string{"upgrade", "taintlet", second.chart, "--wait"}, second},
		{[]string{"rollback", "taintlet", "1", "--wait"}, first},
		// The values of the release before must not keep its image.
		{[]string{"upgrade", "taintlet", second.chart, "--reuse-values", "--wait"}, second},
	} {
		i.helm(step.args...)
		agent := i.runs(step.to)
		i.wait(func(node *corev1.Node) bool { return strings.HasPrefix(recordOf(node).Instance.Name, agent) })
		i.checks(step.to)
	}
	history.hasTaintUntil(t, i.cluster.GetNode(t, nodeName))

	i.helm("uninstall", "taintlet", "--wait")
	node := i.cluster.GetNode(t, nodeName)
	if hasTaint(node) || node.Annotations[taints.RecordAnnotation] != "" {
		t.Errorf("helm uninstall leaves %v and %v", node.Spec.Taints, node.Annotations)
	}
}

// download is the files of a release as somebody has them who downloaded them.
type download struct {
	version, dir string
	image        string // as the chart asks for it
	chart        string // the packaged chart
	plugin       string // kubectl-taintlet, out of its archive
}

// installation is a control plane with one Node, on whose kubelet releases are installed.
type installation struct {
	t          *testing.T
	cluster    *cluster.Cluster
	kubelet    *kubelet.Kubelet
	helmPath   string
	kubeconfig string
}

// unpacked checks the files and unpacks the plugin.
func (r *release) unpacked(t *testing.T) download {
	t.Helper()
	checkChecksums(t, r.out)
	folder := t.TempDir()
	run(t, nil, "tar", "-xzf", filepath.Join(r.out, r.archiveName(r.people[0])), "-C", folder)
	entry, err := tagged(filepath.Join(r.out, "taintlet-image"))
	if err != nil {
		t.Fatal(err)
	}
	return download{version: r.version, dir: r.out, image: r.name + ":" + r.version + "@" + entry.Digest,
		chart: filepath.Join(r.out, "taintlet-"+r.version+".tgz"), plugin: filepath.Join(folder, "kubectl-taintlet")}
}

func newInstallation(t *testing.T, releases ...download) *installation {
	t.Helper()
	i := &installation{t: t, helmPath: bed.Helm(t)}
	ip, connect := bed.ListenAsService(t)
	i.cluster = cluster.New(t, cluster.Options{
		Address: ip, // so that the API server's certificate has it
		Args: map[string][]string{
			cluster.APIServer:         {"--service-cluster-ip-range=" + ip + "/24"},
			cluster.ControllerManager: {"--controllers=*"},
		},
	})
	connect(i.cluster.URL())
	i.kubeconfig = cluster.Kubeconfig(t, i.cluster.Admin())
	var err error
	i.kubelet, err = kubelet.Start(t.Context(), i.cluster, kubelet.Options{
		NodeName:     nodeName,
		EvictionHard: map[string]string{"memory.available": "100Mi"}, // it never finds its own disk full
		Pods:         true,
		Progress:     os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(i.kubelet.Tail(40))
		}
		if err := i.kubelet.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, r := range releases {
		i.importImage(r)
	}
	return i
}

// importImage gives containerd the image as docs/release.md says.
func (i *installation) importImage(r download) {
	i.t.Helper()
	name, _, _ := strings.Cut(r.image, ":"+r.version)
	var said strings.Builder
	script := strings.NewReplacer("ghcr.io/OWNER/taintlet", name, "0.1.0", r.version).Replace(bed.Scripts(i.t, "docs/release.md")[0])
	ctr := exec.Command("sh", "-c", "cd "+r.dir+" && "+script)
	ctr.Stdout, ctr.Stderr = &said, &said
	running, err := i.kubelet.StartInside("ctr", ctr, "")
	if err == nil {
		err = running.Wait()
	}
	if err != nil {
		i.t.Fatalf("%v\n%s", err, said.String())
	}
	i.t.Log(said.String())
}

// helm runs helm without Go on the PATH.
func (i *installation) helm(args ...string) {
	i.t.Helper()
	began := time.Now()
	args = append(args, "--namespace="+bed.Namespace, "--timeout="+patience.String())
	run(i.t, i.env(), i.helmPath, args...)
	i.t.Logf("helm %s: %.1f s", strings.Join(args, " "), time.Since(began).Seconds())
}

// script runs commands in a folder with the files of a release, and without Go on the PATH.
func (i *installation) script(r download, commands string) string {
	i.t.Helper()
	env := append(i.env(), "PATH="+filepath.Dir(i.helmPath)+":/usr/bin:/bin") // the last one counts
	return run(i.t, env, "sh", "-ec", "cd "+i.t.TempDir()+"; ln -s "+r.dir+"/* .\n"+commands)
}

// env is the environment of somebody who has no Go.
func (i *installation) env() []string {
	return []string{"PATH=/usr/bin:/bin", "HOME=" + i.t.TempDir(), "KUBECONFIG=" + i.kubeconfig}
}

// runs checks that the only agent is that of the release, and returns the name of its pod.
func (i *installation) runs(r download) (pod string) {
	i.t.Helper()
	cluster.Eventually(i.t, "one ready agent of "+r.version, func() error {
		pods, err := i.cluster.Client().CoreV1().Pods(bed.Namespace).List(i.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=taintlet"})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 || !pods.Items[0].Status.ContainerStatuses[0].Ready {
			return fmt.Errorf("%d pods: %v", len(pods.Items), pods.Items)
		}
		if image := pods.Items[0].Spec.Containers[0].Image; image != r.image {
			return fmt.Errorf("it runs %s, want %s", image, r.image)
		}
		pod = pods.Items[0].Name
		return nil
	})
	return pod
}

// noneFailed is the end of the output. While no Node has a taint, nothing can show that one
// is kept, and that is not checked.
var noneFailed = regexp.MustCompile(`\n\d+ passed(, 1 not checked)?\n$`)

// checks runs the plugin of the release, which has to find no fault and nothing to warn of. It
// waits, because policies are in force on an API server some seconds after they are made.
func (i *installation) checks(r download) {
	i.t.Helper()
	if said := run(i.t, i.env(), r.plugin, "check", "--wait", "--timeout="+patience.String()); !noneFailed.MatchString(said) {
		i.t.Errorf("kubectl-taintlet check of %s:\n%s", r.version, said)
	}
}

// serveDNS makes the EndpointSlice of a Service of the cluster's DNS, which each cluster has.
func (i *installation) serveDNS() {
	i.t.Helper()
	dns := bed.NewSlice(metav1.NamespaceSystem, "kube-dns", "kube-dns", "dns-tcp", 53)
	bed.AddEndpoint(dns, nodeName, "10.244.1.2").TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceSystem, Name: "coredns-1"}
	if err := bed.CreateSlices(i.t.Context(), i.cluster, dns); err != nil {
		i.t.Fatal(err)
	}
}

// fillDisk allocates blocks of the kubelet's file system.
func (i *installation) fillDisk() {
	i.t.Helper()
	file, err := os.Create(i.kubelet.HostPath("/var/lib/ballast"))
	if err != nil {
		i.t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing is written
	var u unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &u); err != nil {
		i.t.Fatal(err)
	}
	left := u.Blocks * (100 - fullPercent) / 100
	if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(u.Bavail-left)*u.Bsize); err != nil { //nolint:gosec // of a small disk
		i.t.Fatal(err)
	}
}

func (i *installation) wait(holds func(*corev1.Node) bool) *corev1.Node {
	i.t.Helper()
	node, err := i.cluster.WaitNode(i.t.Context(), nodeName, holds)
	if err != nil {
		i.t.Fatal(err)
	}
	return node
}

// hasTaint holds with the well-known taint or its stand-in.
func hasTaint(node *corev1.Node) bool {
	return cluster.HasTaint(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)(node) ||
		cluster.HasTaint("taintlet.dev/disk-pressure", corev1.TaintEffectNoSchedule)(node)
}

// record is of the agents' record what this test compares.
type record struct {
	Instance struct{ Name string }
	Owned    []taints.Pair
}

func recordOf(node *corev1.Node) (r record) {
	_ = json.Unmarshal([]byte(node.Annotations[taints.RecordAnnotation]), &r) // what is no record owns nothing
	return r
}

// history is all versions of the Node after one of them.
type history struct {
	first    *corev1.Node
	versions <-chan *corev1.Node
}

func (i *installation) follow(from *corev1.Node) history {
	i.t.Helper()
	watcher, err := i.cluster.Client().CoreV1().Nodes().Watch(i.t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + nodeName, ResourceVersion: from.ResourceVersion,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	versions := make(chan *corev1.Node, 10_000)
	go func() { // ends with the test's context
		defer close(versions)
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			node, ok := event.Object.(*corev1.Node)
			if !ok {
				return
			}
			versions <- node
		}
	}()
	return history{from, versions}
}

// hasTaintUntil fails if a version up to the last lacks the taint or its entry in the record.
func (h history) hasTaintUntil(t *testing.T, last *corev1.Node) {
	t.Helper()
	count, owned := 0, recordOf(h.first).Owned
	if len(owned) != 1 {
		t.Fatalf("the record has %v", owned)
	}
	for version := range h.versions {
		count++
		if !hasTaint(version) || !slices.Equal(recordOf(version).Owned, owned) {
			t.Fatalf("version %d: taints %v, annotations %v; before, the record had %v", count, version.Spec.Taints, version.Annotations, owned)
		}
		if version.ResourceVersion == last.ResourceVersion {
			t.Logf("%d versions of the Node have the taint", count)
			return
		}
	}
	t.Fatal("the watch ended early")
}

// run runs a program to its end and returns what it prints.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Env = env
	text, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, text)
	}
	return string(text)
}
