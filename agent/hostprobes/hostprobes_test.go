package hostprobes_test

import (
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Each condition of the schema has a probe of its own.
func TestEveryConditionHasItsProbe(t *testing.T) {
	for _, c := range config.Default().Conditions {
		if got := hostprobes.NewProbe(probes.Host{})(c).Condition(); got != c.Name {
			t.Errorf("the probe of %s is about %s", c.Name, got)
		}
	}
}

// A class that is off is not asked, so the message does not tell of it.
func TestDisabledClassesReachTheProbe(t *testing.T) {
	told := func(classes ...verdict.Class) string {
		c := config.Condition{Section: &config.Network{Sampling: config.Default().Conditions[3].Section.(*config.Network).Sampling, DisabledClasses: classes}}
		return hostprobes.NewProbe(probes.Host{Proc: "testdata", Sys: "/sys"})(c).Observe(t.Context()).Message
	}
	if with, without := told(verdict.DNS, verdict.Local), told(verdict.Classes()...); with == without {
		t.Errorf("with the class route, and without any: %q", with)
	}
}

// A mount point of the configuration is one of the probe's.
func TestMountPointsReachTheProbe(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\ndisk: {paths: [/], mountPoints: [/no-disk]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if o := hostprobes.NewProbe(probes.Host{Root: "/", Proc: "/proc"})(cfg.Conditions[1]).Observe(t.Context()); o.Reason != "NotMounted" {
		t.Errorf("%+v", o)
	}
}
