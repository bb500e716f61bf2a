package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/process"
)

// The kinds of child processes. What is measured runs apart from what measures it.
const (
	agentsKind   = "agents"
	watchesKind  = "watches"
	foreignKind  = "foreign"
	kubeletsKind = "kubelets"
)

// setup is what a child process is told by a file.
type setup struct {
	Host  string
	CA    []byte
	Nodes []string
	// Tokens are those of the agents' service account, by Node.
	Tokens map[string]string
	// Config is the path of the agents' configuration.
	Config string
	// Foreign is the token of the foreign client.
	Foreign string
	// Kubelets are the certificates of the kubelets, by Node, and Admin is the token of an
	// administrator: for the process of the kubelets.
	Kubelets map[string]certificate
	Admin    string
}

// certificate is what identifies a client, with its key.
type certificate struct{ Cert, Key []byte }

// by returns the configuration of a client with a certificate, and with no connection
// to share.
func (s *setup) by(c certificate) *rest.Config {
	return &rest.Config{Host: s.Host, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA, CertData: c.Cert, KeyData: c.Key}, QPS: -1}
}

// as returns the configuration of a client with a token, and with no connection to
// share.
func (s *setup) as(token string) *rest.Config {
	return &rest.Config{Host: s.Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA}, QPS: -1}
}

// command is what a child process is told to do.
type command struct {
	Op    string
	Over  time.Duration // the time in which it is to happen, evenly spread
	First int           // of the Nodes, in their order
	Count int
	Step  int // every so many of them; 0: each
	Level string
	From  time.Time
	To    time.Time
}

// reply is its answer.
type reply struct {
	Error  string
	Answer json.RawMessage
}

// serveChild runs a child: it does one command after another until stdin ends.
func serveChild(kind, path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // our own file
	if err != nil {
		return err
	}
	s := &setup{}
	if err := json.Unmarshal(text, s); err != nil {
		return err
	}
	var do func(command) (any, error)
	switch kind {
	case agentsKind:
		do = newAgentsProcess(s).do
	case watchesKind:
		do = (&watches{setup: s}).do
	case foreignKind:
		do = newForeign(s).do
	case kubeletsKind:
		do = newKubelets(s).do
	default:
		return fmt.Errorf("no such child: %s", kind)
	}
	timers := newTimers()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var c command
		if err := in.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r reply
		answer, err := any(nil), error(nil)
		if c.Op == lateness {
			answer = timers.late(c.From, c.To)
		} else {
			answer, err = do(c)
		}
		if err != nil {
			r.Error = err.Error()
		} else if r.Answer, err = json.Marshal(answer); err != nil {
			return err
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

// child is a child process as its parent has it.
type child struct {
	kind    string
	process *process.Process
	mu      sync.Mutex
	in      *json.Encoder
	out     *json.Decoder
}

// startChild starts this program anew, until the context ends. Its log is in the
// folder.
func startChild(ctx context.Context, kind, folder string, s *setup) (*child, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, kind+".json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(folder, kind+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	run := process.Command(program, kind, path)
	if kind == foreignKind || kind == kubeletsKind {
		// They stand for programs of other machines, and must not wait for the
		// processors of this one. Where that is not allowed, nice goes on without it.
		run = process.Command("nice", "-n", "-10", program, kind, path)
	}
	run.Stdin, run.Stdout, run.Stderr = inRead, outWrite, log
	p, err := process.Start(kind, run, "")
	if err != nil {
		return nil, err
	}
	_, _ = inRead.Close(), outWrite.Close()
	context.AfterFunc(ctx, func() { _ = p.Kill() }) // whoever waits for its answer gets an error
	return &child{kind: kind, process: p, in: json.NewEncoder(inWrite), out: json.NewDecoder(outRead)}, nil
}

// tell has the child do a command and decodes its answer; nil: there is none.
func (c *child) tell(what command, into any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.in.Encode(what); err != nil {
		return fmt.Errorf("%s %s: %w", c.kind, what.Op, errors.Join(err, c.process.Err()))
	}
	var r reply
	if err := c.out.Decode(&r); err != nil {
		return fmt.Errorf("%s %s: %w", c.kind, what.Op, errors.Join(err, c.process.Err()))
	}
	if r.Error != "" {
		return fmt.Errorf("%s %s: %s", c.kind, what.Op, r.Error)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(r.Answer, into)
}

func (c *child) end() error { return c.process.Kill() }
