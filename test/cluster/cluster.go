// Package cluster starts a real Kubernetes control plane for tests and for the
// demo: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, built
// from the nested module test/controlplane, on free ports of this host. There
// is no kubelet; RegisterNode stands in for one.
package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/process"
)

const (
	loopback       = "127.0.0.1"
	serviceRange   = "10.96.0.0/16"
	serviceIP      = "10.96.0.1" // of the Service kubernetes
	dirPrefix      = "taintlet-cluster-"
	startTimeout   = 2 * time.Minute
	portTaken      = "address already in use" // in a component's log
	auditLogFile   = "audit.log"
	auditRulesFile = "audit.yaml"
)

// Options says what a Cluster differs in from the usual one.
type Options struct {
	WithoutControllerManager bool
	WithoutScheduler         bool
	AuditLog                 bool                // write every request to AuditLogPath
	AuditOnly                []string            // write only the requests of these users, without bodies; empty: of all
	Address                  string              // that the API server listens on; empty: 127.0.0.1
	Args                     map[string][]string // further arguments by component's name, after the others
	Progress                 io.Writer           // where to say that programs are being built; nil: nowhere
}

// Cluster is a running control plane. Stop ends it; if this process ends in
// any other way, the components end with it.
type Cluster struct {
	version  string
	bin      string // folder of the programs
	dir      string // all files of this cluster
	unlock   func() // gives back the folder's lock
	url      string // of the API server
	token    string // of the administrator
	ca       *authority
	admin    *kubernetes.Clientset
	stopOnce sync.Once
	stopErr  error

	components []*process.Process // in the order of their starts

	hasControllerManager bool

	nodes     sync.WaitGroup  // the goroutines that stand in for kubelets
	nodesCtx  context.Context //nolint:containedctx // RegisterNode's goroutines live as long as the cluster
	stopNodes context.CancelFunc
}

// Start builds what is missing, starts a control plane and returns when it is
// ready: the API server and the others report health, and pods can be created
// in the default namespace. The context bounds the start alone.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	bin, err := Build(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := startOnce(ctx, bin, options)
	// A port that was free may have been taken before a component opened it.
	if err != nil && strings.Contains(err.Error(), portTaken) {
		c, err = startOnce(ctx, bin, options)
	}
	return c, err
}

func startOnce(ctx context.Context, bin string, options Options) (*Cluster, error) {
	c, err := prepare(ctx, bin, !options.WithoutControllerManager)
	if err != nil {
		return nil, err
	}
	if err := c.startAll(ctx, options); err != nil {
		_ = c.Stop() // its complaint, if any, is the same
		return nil, fmt.Errorf("start a control plane: %w", err)
	}
	return c, nil
}

// prepare makes a Cluster with its folder and credentials, and no process.
func prepare(ctx context.Context, bin string, hasControllerManager bool) (*Cluster, error) {
	version, err := KubernetesVersion()
	if err != nil {
		return nil, err
	}
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	dir, unlock, err := makeDir(ctx, bin)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		version: version,
		bin:     bin,
		dir:     dir,
		unlock:  unlock,
		token:   rand.Text(),
		ca:      ca,

		hasControllerManager: hasControllerManager,
	}
	c.nodesCtx, c.stopNodes = context.WithCancel(context.Background())
	return c, nil
}

// startAll starts the components in the order in which they need one another.
func (c *Cluster) startAll(ctx context.Context, options Options) error {
	address := loopback
	if options.Address != "" {
		address = options.Address
	}
	port, err := FreePorts(address, 5)
	if err != nil {
		return err
	}
	c.url = "https://" + net.JoinHostPort(address, port[2])
	if err := c.writeCredentials(net.ParseIP(address)); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(c.Admin())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	if c.admin, err = kubernetes.NewForConfig(c.Admin()); err != nil {
		return err
	}

	etcdURL := "http://" + net.JoinHostPort(loopback, port[0])
	if err := c.startEtcd(ctx, client, etcdURL, port[1], options); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx, client, etcdURL, address, port[2], options); err != nil {
		return err
	}
	var wait []func() error
	for _, component := range []struct {
		without bool
		start   func(string, Options) (*process.Process, error)
		port    string
	}{
		{options.WithoutControllerManager, c.startControllerManager, port[3]},
		{options.WithoutScheduler, c.startScheduler, port[4]},
	} {
		if component.without {
			continue
		}
		p, err := component.start(component.port, options)
		if err != nil {
			return err
		}
		wait = append(wait, func() error {
			return waitHealthy(ctx, p, client, "https://"+net.JoinHostPort(loopback, component.port)+"/healthz")
		})
	}
	for _, ready := range wait {
		if err := ready(); err != nil {
			return err
		}
	}
	if options.WithoutControllerManager {
		return nil
	}
	return c.waitServiceAccount(ctx)
}

func (c *Cluster) startEtcd(ctx context.Context, client *http.Client, url, peerPort string, options Options) error {
	peerURL := "http://" + net.JoinHostPort(loopback, peerPort)
	p, err := c.start(Etcd, options,
		"--name=default",
		"--data-dir="+filepath.Join(c.dir, "etcd"),
		"--listen-client-urls="+url,
		"--advertise-client-urls="+url,
		"--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=default="+peerURL,
		"--unsafe-no-fsync",
	)
	if err != nil {
		return err
	}
	return waitHealthy(ctx, p, client, url+"/health")
}

func (c *Cluster) startAPIServer(ctx context.Context, client *http.Client, etcdURL, address, port string, options Options) error {
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=" + address,
		"--advertise-address=" + address,
		"--secure-port=" + port,
		"--tls-cert-file=" + c.file(servingFile),
		"--tls-private-key-file=" + c.file(servingKeyFile),
		"--client-ca-file=" + c.file(caFile),
		"--kubelet-client-certificate=" + c.file(kubeletFile),
		"--kubelet-client-key=" + c.file(kubeletKeyFile),
		"--requestheader-client-ca-file=" + c.file(caFile), // else the others complain that there is none
		"--requestheader-allowed-names=front-proxy-client",
		"--token-auth-file=" + c.file(tokenFile),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction", // as every installer sets it
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.file(accountPubFile),
		"--service-account-signing-key-file=" + c.file(accountKeyFile),
		"--endpoint-reconciler-type=none", // endpoints may not be loopback addresses
		"--allow-privileged=true",
	}
	if options.AuditLog {
		if err := os.WriteFile(c.file(auditRulesFile), []byte(auditRules(options.AuditOnly)), 0o600); err != nil {
			return fmt.Errorf("write the audit policy: %w", err)
		}
		args = append(args, "--audit-policy-file="+c.file(auditRulesFile), "--audit-log-path="+c.AuditLogPath())
	}
	p, err := c.start(APIServer, options, args...)
	if err != nil {
		return err
	}
	return waitHealthy(ctx, p, client, c.url+"/readyz")
}

// auditRules keep the body of what is written to Nodes, and of everything else who did
// what; or, of the users, who did what. A log of all requests would cost the API server
// more than many agents do.
func auditRules(users []string) string {
	const begin = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"
	if len(users) > 0 {
		return begin + "- level: Metadata\n  users: [\"" + strings.Join(users, "\", \"") + "\"]\n- level: None\n"
	}
	return begin + "- level: Request\n  resources: [{group: \"\", resources: [nodes, nodes/status]}]\n- level: Metadata\n"
}

func (c *Cluster) startControllerManager(port string, options Options) (*process.Process, error) {
	kubeconfig, err := c.componentKubeconfig(ControllerManager)
	if err != nil {
		return nil, err
	}
	return c.start(ControllerManager, options, append(c.servingArgs(kubeconfig, port),
		"--use-service-account-credentials=true", // its controllers have names of their own, as in most clusters
		"--service-account-private-key-file="+c.file(accountKeyFile),
		"--root-ca-file="+c.file(caFile),
		"--controllers="+strings.Join(controllers(), ","),
	)...)
}

// controllers are those that matter to a Node, its taints and its pods. Each
// one more costs the start some requests for its service account and token, of
// which the controller manager makes 20 a second; that limit stays, because how
// fast taints move depends on it. Options.Args can add to the list ("*": all).
func controllers() []string {
	return []string{
		"node-lifecycle-controller", "taint-eviction-controller",
		"daemonset-controller", "deployment-controller", "replicaset-controller", "job-controller", "cronjob-controller",
		"disruption-controller", "endpointslice-controller",
		"serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
		"namespace-controller", "garbage-collector-controller", "pod-garbage-collector-controller",
		"validatingadmissionpolicy-status-controller",
	}
}

func (c *Cluster) startScheduler(port string, options Options) (*process.Process, error) {
	kubeconfig, err := c.componentKubeconfig(Scheduler)
	if err != nil {
		return nil, err
	}
	return c.start(Scheduler, options, c.servingArgs(kubeconfig, port)...)
}

// servingArgs are the arguments that controller manager and scheduler share.
func (c *Cluster) servingArgs(kubeconfig, port string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + port,
		"--tls-cert-file=" + c.file(servingFile),
		"--tls-private-key-file=" + c.file(servingKeyFile),
		"--leader-elect=false",
	}
}

func (c *Cluster) componentKubeconfig(name string) (string, error) {
	config, err := c.Config("system:" + name)
	if err != nil {
		return "", err
	}
	path := c.file(name + ".kubeconfig")
	return path, WriteKubeconfig(path, config)
}

func (c *Cluster) start(name string, options Options, args ...string) (*process.Process, error) {
	command := process.Command(filepath.Join(c.bin, name), append(args, options.Args[name]...)...)
	p, err := process.Start(name, command, filepath.Join(c.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	c.components = append(c.components, p)
	return p, nil
}

// waitHealthy asks the URL until it answers 200 OK.
func waitHealthy(ctx context.Context, p *process.Process, client *http.Client, url string) error {
	return p.WaitUntil(ctx, func(ctx context.Context) error {
		_, err := process.Get(ctx, client, url)
		return err
	})
}

// waitServiceAccount waits for the first work of the controller manager that
// others need: without the account no pod can be created.
func (c *Cluster) waitServiceAccount(ctx context.Context) error {
	accounts := c.admin.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	_, err := until(ctx, "service account default", which(named("default"), accounts.List, accounts.Watch),
		func(found object) bool { return true })
	return err
}

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// Client returns the administrator's client.
func (c *Cluster) Client() kubernetes.Interface { return c.admin }

// URL returns the address of the API server.
func (c *Cluster) URL() string { return c.url }

// LogDir returns the folder with one log per component, such as
// kube-apiserver.log. It is removed with the cluster, also after this process
// was killed.
func (c *Cluster) LogDir() string { return c.dir }

// AuditLogPath returns the file of Options.AuditLog, one JSON event per line.
func (c *Cluster) AuditLogPath() string { return c.file(auditLogFile) }

// Tail returns the last lines of every component's log.
func (c *Cluster) Tail(lines int) string {
	var tails []string
	for _, p := range c.components {
		tails = append(tails, p.Tail(lines))
	}
	return strings.Join(tails, "\n")
}

// Processes returns the process IDs of the running components by name.
func (c *Cluster) Processes() map[string]int {
	running := map[string]int{}
	for _, p := range c.components {
		select {
		case <-p.Ended():
		default:
			running[p.Name()] = p.PID()
		}
	}
	return running
}

// Stop ends everything that Start and RegisterNode began and removes the
// cluster's files. The error tells of components that had ended before.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() {
		c.stopNodes()
		c.nodes.Wait()
		c.stopErr = errors.Join(c.killComponents(), os.RemoveAll(c.dir))
		c.unlock()
	})
	return c.stopErr
}

// killComponents ends the last started first. All that they know is about to be
// removed: nothing is worth a graceful end.
func (c *Cluster) killComponents() error {
	var errs []error
	for _, p := range slices.Backward(c.components) {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

// makeDir makes the folder of one cluster, locked as long as its process
// lives, and removes those of processes that were killed.
func makeDir(ctx context.Context, bin string) (dir string, unlock func(), err error) {
	// Nobody may sweep while a folder is there and its lock is not yet taken.
	done, err := process.Lock(ctx, filepath.Join(bin, ".folders.lock"), nil)
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for a control plane: %w", err)
	}
	defer done()
	if err := sweep(); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp("", dirPrefix); err != nil {
		return "", nil, fmt.Errorf("make a folder for a control plane: %w", err)
	}
	unlock, err = process.TryLock(filepath.Join(dir, "lock"))
	return dir, unlock, err
}

func sweep() error {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return fmt.Errorf("find what earlier control planes left: %w", err)
	}
	for _, dir := range left {
		unlock, err := process.TryLock(filepath.Join(dir, "lock"))
		if err != nil {
			continue // in use, or somebody else's
		}
		err = os.RemoveAll(dir)
		unlock()
		if err != nil {
			return fmt.Errorf("remove what an earlier control plane left: %w", err)
		}
	}
	return nil
}

// FreePorts returns ports that are free on the address. All
// are held until the last is found, so that no two are the same.
func FreePorts(address string, count int) ([]string, error) {
	var ports []string
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}()
	for len(ports) < count {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, "0")) //nolint:noctx // closed at once
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		held = append(held, listener)
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}
