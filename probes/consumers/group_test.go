package consumers

import (
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/taintlet/taintlet/probes/trend"
)

const (
	uid    = "7c0f2b1e-3d4a-4f5b-8c6d-0123456789d1"
	sliced = "7c0f2b1e_3d4a_4f5b_8c6d_0123456789d1"
	static = "1ba7ab0f7b3d2c9a0e4f5b6c7d8e9f00"
	ctr    = "4f1d9a0b6c"
)

func TestGroups(t *testing.T) {
	t.Parallel()
	pod := Group{KindPod, uid}
	for name, test := range map[string]struct {
		text      string
		isPrivate bool
		want      Group
	}{
		"v2, cgroupfs, burstable":     {text: "0::/kubepods/burstable/pod" + uid + "/" + ctr, want: pod},
		"v2, cgroupfs, guaranteed":    {text: "0::/kubepods/pod" + uid + "/" + ctr, want: pod},
		"v2, systemd, burstable":      {text: "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + sliced + ".slice/cri-containerd-" + ctr + ".scope", want: pod},
		"v2, systemd, guaranteed":     {text: "0::/kubepods.slice/kubepods-pod" + sliced + ".slice/crio-" + ctr + ".scope", want: pod},
		"v2, systemd, --cgroup-root":  {text: "0::/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-besteffort.slice/a-b-kubepods-besteffort-pod" + sliced + ".slice/x", want: pod},
		"v2, cgroupfs, --cgroup-root": {text: "0::/a/b/kubepods/besteffort/pod" + uid, want: pod},
		"v2, nested in the container": {text: "0::/kubepods/pod" + uid + "/" + ctr + "/system.slice/app.service", want: pod},
		"v2, a cluster in a pod":      {text: "0::/kubepods/pod" + uid + "/" + ctr + "/kubelet/kubepods/pod" + static, want: pod},
		"v2, kind":                    {text: "0::/docker/" + ctr + "/kubelet/kubepods/burstable/pod" + uid + "/x", want: pod},
		"v2, static pod":              {text: "0::/kubepods/burstable/pod" + static + "/x", want: Group{KindPod, static}},
		"v2, gone":                    {text: "0::/kubepods/pod" + uid + " (deleted)", want: pod},
		"v1":                          {text: "12:pids:/kubepods/pod" + uid + "/x\n4:memory:/kubepods/pod" + uid + "/x\n1:name=systemd:/\n0::/", want: pod},
		"v1, of one controller only":  {text: "9:name=systemd:/system.slice/containerd.service\n4:memory:/kubepods/pod" + uid, want: pod},
		"v1, systemd":                 {text: "4:memory:/kubepods.slice/kubepods-pod" + sliced + ".slice/docker-" + ctr + ".scope\n0::/", want: pod},
		"private, another QoS":        {text: "0::/../../../burstable/pod" + uid + "/x", isPrivate: true, want: pod},
		"private, the same QoS":       {text: "0::/../../pod" + uid + "/x", isPrivate: true, want: pod},
		"private, systemd":            {text: "0::/../../../kubepods-burstable.slice/kubepods-burstable-pod" + sliced + ".slice/x.scope", isPrivate: true, want: pod},
		"private, itself":             {text: "0::/", isPrivate: true, want: Group{Kind: KindOwn}},
		"private, the host's root":    {text: "0::/../../../..", isPrivate: true, want: Group{}},
		"private, a unit":             {text: "0::/../../../../system.slice/kubelet.service", isPrivate: true, want: Group{KindUnit, "kubelet.service"}},
		"unit":                        {text: "0::/system.slice/kubelet.service", want: Group{KindUnit, "kubelet.service"}},
		"unit of a template":          {text: "0::/system.slice/system-getty.slice/getty@tty1.service", want: Group{KindUnit, "getty@tty1.service"}},
		"unit of v1":                  {text: "9:name=systemd:/system.slice/ssh.service\n4:memory:/system.slice\n0::/", want: Group{KindUnit, "ssh.service"}},
		"user":                        {text: "0::/user.slice/user-1000.slice/session-3.scope", want: Group{KindUnit, "user-1000.slice"}},
		"init":                        {text: "0::/init.scope", want: Group{KindUnit, "init.scope"}},
		"no unit":                     {text: "0::/docker/" + ctr, want: Group{KindCgroup, "/docker/" + ctr}},
		"root":                        {text: "4:memory:/\n0::/", want: Group{}},
		"a name like a pod's":         {text: "0::/kubepods/podium", want: Group{KindCgroup, "/kubepods/podium"}},
		"half a UID":                  {text: "0::/kubepods/pod7c0f2b1e", want: Group{KindCgroup, "/kubepods/pod7c0f2b1e"}},
		"a UID in capitals":           {text: "0::/pod" + strings.ToUpper(uid), want: Group{KindCgroup, "/pod" + strings.ToUpper(uid)}},
		"control characters":          {text: "0::/system.slice/a\x1b[31m\u202eb;(x).service", want: Group{KindUnit, "a?[31m?b??x?.service"}},
		"nothing":                     {},
		"garbled":                     {text: "::\n:\n0:x"},
	} {
		if got := groupOf(test.text, test.isPrivate); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestLongNamesAreCut(t *testing.T) {
	t.Parallel()
	got := groupOf("0::/system.slice/"+strings.Repeat("ä", 200)+".service", false)
	if len(got.Name) > maxName || !utf8.ValidString(got.Name) || !strings.HasSuffix(got.Name, "…") {
		t.Errorf("%q", got.Name)
	}
}

func TestPodsInText(t *testing.T) {
	t.Parallel()
	got := PodsIn("x; pod " + uid + " (java) took 1 GiB and pod " + static + " (sh); pod " + uid + "; the largest is pod nobody, pod ")
	if strings.Join(got, " ") != uid+" "+static {
		t.Error(got)
	}
	if found := (Finding{Certainty: Named, Takers: [2]Consumer{{Group: Group{KindPod, uid}, Took: 1}}}).Text(); len(PodsIn(found)) != 1 {
		t.Errorf("the pod is not found in %q", found)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 12 0 4200 99 300 18446744073709551615 1 1"
	got, err := parseStat("7 (a) b\n(c)" + rest + "\n")
	if want := (stat{command: "a) b\n(c", tasks: 12, start: 42e9, resident: 300}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	kernel, err := parseStat("2 (kthreadd)" + strings.Replace(rest, "4194560", "2129984", 1))
	if err != nil || !kernel.isKernel {
		t.Errorf("%+v, %v", kernel, err)
	}
	for _, garbled := range []string{"", "7", ")(", "7 (a) S 1", "7 (a)" + strings.Replace(rest, "4200", "x", 1), "7 (a)" + strings.Replace(rest, " 12 ", " -1 ", 1)} {
		if got, err := parseStat(garbled); err == nil {
			t.Errorf("%q is %+v", garbled, got)
		}
	}
	// This process, as the kernel has it.
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if own, err := parseStat(string(text)); err != nil || own.tasks < 1 || own.resident == 0 || own.isKernel {
		t.Errorf("%q: %+v, %v", text, own, err)
	}
}

func FuzzGroups(f *testing.F) {
	f.Add("0::/kubepods/burstable/pod"+uid+"/x\n", false)
	f.Add("4:memory:/kubepods.slice/kubepods-pod"+sliced+".slice/a\n0::/", false)
	f.Add("0::/../../pod"+uid, true)
	f.Add("0::/user.slice/user-1000.slice/\x1b;().scope (deleted)", false)
	f.Fuzz(func(t *testing.T, text string, isPrivate bool) {
		g := groupOf(text, isPrivate)
		if g.Kind == KindPod != isUID(g.Name) && g.Kind == KindPod {
			t.Errorf("%q is no UID", g.Name)
		}
		checkPrintable(t, g.Name, maxName)
		for _, found := range PodsIn(text) {
			if !isUID(found) {
				t.Errorf("%q is no UID", found)
			}
		}
	})
}

func FuzzStat(f *testing.F) {
	f.Add("7 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 12 0 4200 99 300 1 1 1", "300 200 100 0")
	f.Fuzz(func(t *testing.T, text, shared string) {
		s, err := parseStat(text)
		if err == nil && (s.tasks < 0 || s.start < 0) {
			t.Errorf("%+v", s)
		}
		checkPrintable(t, trend.Printable(s.command, mostCommand), mostCommand)
		if pages, err := parseShared(shared); err == nil && pages > 1<<63-1 {
			t.Error(pages)
		}
	})
}

func checkPrintable(t *testing.T, name string, most int) {
	t.Helper()
	if len(name) > most || !utf8.ValidString(name) || strings.ContainsAny(name, ";()") || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsMark(r) }) {
		t.Errorf("%q does not fit into a text", name)
	}
}
