package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// exitCode runs the agent to its end.
func exitCode(t *testing.T, args ...string) (int, string) {
	t.Helper()
	return exitCodeOf(t, binary.Path(t), args...)
}

// askedCode runs the program for people to its end.
func askedCode(t *testing.T, args ...string) (int, string) {
	t.Helper()
	return exitCodeOf(t, plugin.Path(t), args...)
}

func exitCodeOf(t *testing.T, program string, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bed.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput() //nolint:gosec // our own binary
	if exit, ok := err.(*exec.ExitError); ok {                              //nolint:errorlint // exec returns it bare
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(out)
}

func TestUsageErrorsExitWithTwoAndNameTheTrouble(t *testing.T) {
	t.Parallel()
	binaryFile := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(binaryFile, []byte{0, 1, 0xfe}, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"unknown flag":         {[]string{"--nonsense"}, []string{"unknown flag: --nonsense\n", "See taintlet help."}},
		"another verb's flag":  {[]string{"once", "--listen="}, []string{"unknown flag: --listen\n", "See taintlet help once."}},
		"unknown verb":         {[]string{"start"}, []string{`unknown command "start" for "taintlet"`}},
		"verb after flags":     {[]string{"--verbosity=1", "once"}, []string{"unknown flag: --verbosity\n", "See taintlet help once."}},
		"argument":             {[]string{"once", "more"}, []string{`unknown command "more" for "taintlet once"`}},
		"unknown shell":        {[]string{"completion", "tcsh"}, []string{`unknown command "tcsh" for "taintlet completion"`}},
		"output":               {[]string{"once", "--output=xml"}, []string{`invalid argument "xml" for "-o, --output" flag: must be one of table, json, yaml`}},
		"another value":        {[]string{"--dry-run=maybe"}, []string{"maybe", "none, client, server"}},
		"what people ask":      {[]string{"status", "worker"}, []string{`unknown command "status" for "taintlet"`}},
		"node name":            {[]string{"--node-name=Not_A_Node"}, []string{"--node-name", "Not_A_Node"}},
		"missing config":       {[]string{"--config=/nonexistent.yaml"}, []string{"/nonexistent.yaml", "no such file"}},
		"binary configuration": {[]string{"once", "--config=" + binaryFile}, []string{binaryFile, "not YAML"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := exitCode(t, c.args...)
			if code != 2 {
				t.Errorf("exit code %d", code)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("output lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

// A host name that no Node can have keeps nobody from sampling the host.
func TestOnceNeedsNoNodeName(t *testing.T) {
	t.Parallel()
	host := fixtures.NewHost(t)
	code, out := exitCode(t, append([]string{"once", "--node-name=My_Laptop"}, host.Flags()...)...)
	if code != 0 || !strings.Contains(out, "MemoryPressure") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
}

func TestFailuresToStartExitWithOne(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nothing went through it
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"not in a cluster":   {[]string{"--listen="}, "no --kubeconfig given and not in a cluster"},
		"missing kubeconfig": {[]string{"--kubeconfig=/nonexistent"}, "/nonexistent"},
		"no such cluster":    {[]string{"cleanup", "all", "--kubeconfig=/nonexistent"}, "/nonexistent"},
		"port taken":         {[]string{"--dry-run=client", "--listen=" + taken.Addr().String()}, "address already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := exitCode(t, c.args...)
			if code != 1 || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, output:\n%s", code, out)
			}
		})
	}
}

// Whatever is missing, empty, cut off or garbled in the host's trees: that
// condition is Unknown with a reason, the others are not, and once exits 3.
func TestGarbledHostIsUnknown(t *testing.T) {
	t.Parallel()
	garble := map[string]func(h *fixtures.Host, file string){
		"missing":   func(h *fixtures.Host, file string) { h.Remove(file) },
		"empty":     func(h *fixtures.Host, file string) { h.Write(file, "") },
		"truncated": func(h *fixtures.Host, file string) { h.Write(file, "Mem") },
		"garbled":   func(h *fixtures.Host, file string) { h.Write(file, "\x00\xff:: 12 x\n-1 kB\n") },
	}
	for file, condition := range map[string]string{
		"proc/meminfo": "MemoryPressure", "proc/loadavg": "PIDPressure",
		"proc/sys/kernel/pid_max": "PIDPressure", fixtures.UplinkCarrier(t): "NetworkUnavailable",
	} {
		for how, do := range garble {
			t.Run(how+" "+filepath.Base(file), func(t *testing.T) {
				h := fixtures.NewHost(t)
				do(h, file)
				code, out := exitCode(t, append([]string{"once", "-o=json"}, h.Flags()...)...)
				if code != 3 {
					t.Errorf("exit code %d", code)
				}
				var report struct {
					Conditions []struct{ Condition, Level, Reason, Message string }
				}
				if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Conditions) != 4 {
					t.Fatalf("%v:\n%s", err, out)
				}
				for _, c := range report.Conditions {
					want := "OK"
					if c.Condition == condition {
						want = "Unknown"
					}
					if c.Level != want || c.Reason == "" || c.Message == "" {
						t.Errorf("%+v, want %s", c, want)
					}
				}
			})
		}
	}
}

// A probe that goes blind while its condition is tainted removes nothing from the
// Node, and one that goes blind while all is well puts nothing on it.
func TestBlindProbesChangeNoTaint(t *testing.T) {
	t.Parallel()
	c, key := pressured(t, corev1.TaintNodeMemoryPressure)
	node, host := c.Register(t, "blind"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	waitNode(t, c, node.Name, cluster.HasTaint(key, corev1.TaintEffectNoSchedule))
	host.Write("proc/meminfo", "garbage\n")
	host.Write("proc/loadavg", "")
	host.Remove(fixtures.UplinkCarrier(t))
	samples := unknownSamples(a, "MemoryPressure")
	for unknownSamples(a, "MemoryPressure") < samples+5 || unknownSamples(a, "PIDPressure") < 5 || unknownSamples(a, "NetworkUnavailable") < 5 {
		staysThroughUpdates(t, c, node, key, time.Second)
	}
	now := waitNode(t, c, node.Name, func(*corev1.Node) bool { return true })
	if len(now.Spec.Taints) != 1 {
		t.Errorf("taints = %v", now.Spec.Taints)
	}
	host.Memory(50)
	waitNode(t, c, node.Name, cluster.Not(cluster.HasTaint(key, corev1.TaintEffectNoSchedule)))
}

// unknownSamples is how often the agent could not tell.
func unknownSamples(a *bed.Agent, condition string) int {
	a.T.Helper()
	return a.Metric(`taintlet_probe_samples_total{condition="` + condition + `",level="Unknown"}`)
}

func TestMissingNodeIsNotReadyUntilItExists(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	host := fixtures.NewHost(t)
	host.Memory(2)
	a := startAgent(t, c, "late", host, quick)
	a.WaitLog("node not found")
	if code, body := a.Get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "node not seen") {
		t.Errorf("/readyz = %d %s", code, body)
	}
	if code, _ := a.Get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz = %d", code)
	}
	c.Register(t, "late")
	waitNode(t, c, "late", cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule))
	if code, body := a.Get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz = %d %s", code, body)
	}
}

// An API server that cannot be reached at the start: not ready, tries again,
// and works when it is there.
func TestUnreachableAPIServerAtStart(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "unreachable"), fixtures.NewHost(t)
	host.Memory(2)
	gate := cluster.NewGate(t, strings.TrimPrefix(c.URL(), "https://"))
	as := identity(t, c, node.Name)
	as.Host = "https://" + gate.Address
	a := startAgentAs(t, as, node.Name, host, quick)
	a.WaitLog("cannot look for the admission policy; trying again.*connection refused")
	if code, body := a.Get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz = %d %s", code, body)
	}
	gate.Open()
	waitNode(t, c, node.Name, cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule))
}

// An agent that may not patch says which permission it lacks, and changes
// nothing.
func TestForbiddenPatchNamesThePermission(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const user = "system:serviceaccount:taintlet-system:reader"
	if err := c.Grant(t.Context(), "reader", user,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}}); err != nil {
		t.Fatal(err)
	}
	node, host := c.Register(t, "forbidden"), fixtures.NewHost(t)
	host.Memory(2)
	as, err := c.Config(user)
	if err != nil {
		t.Fatal(err)
	}
	a := startAgentAs(t, as, node.Name, host, quick)
	a.WaitLog("cannot look for the admission policy; assuming that it is absent.*permission to get mutatingadmissionpolicybindings")
	a.WaitLog("cannot write the node; trying again.*the permission to patch nodes is missing")
	cluster.Eventually(t, "/readyz to name the permission", func() error { // the loop hears of it after the log
		if code, body := a.Get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "the permission to patch nodes is missing") {
			return fmt.Errorf("/readyz = %d %s", code, body)
		}
		return nil
	})
	if now := c.GetNode(t, node.Name); len(now.Spec.Taints) != 0 {
		t.Errorf("taints = %v", now.Spec.Taints)
	}
}
