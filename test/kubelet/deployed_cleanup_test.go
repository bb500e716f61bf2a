package kubelet_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// findsNoStaleNode runs once what the CronJob runs each hour, while the agent is
// alive.
func (d *deployed) findsNoStaleNode(t *testing.T) {
	manifest := cleanupManifest(t, "cleanup.afterUninstall=false,cleanup.stale=true")
	cron := &batchv1.CronJob{}
	d.install(t, manifest, cron)
	defer d.remove(t, manifest)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: cron.Name, Namespace: cron.Namespace}, Spec: cron.Spec.JobTemplate.Spec}
	jobs, background := d.cluster.Client().BatchV1().Jobs(job.Namespace), metav1.DeletePropagationBackground
	if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.succeeds(t, job, "0 of 1 nodes cleaned up")
	if err := jobs.Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
}

// cleansUp runs what `helm uninstall` runs when the agents are gone.
func (d *deployed) cleansUp(t *testing.T) {
	manifest := cleanupManifest(t, "cleanup.afterUninstall=true,cleanup.stale=false")
	job := &batchv1.Job{}
	d.install(t, manifest, job)
	defer d.remove(t, manifest)
	d.succeeds(t, job, "removed taint "+corev1.TaintNodeDiskPressure+":NoSchedule", "removed annotation "+taints.RecordAnnotation, "1 of 1 nodes cleaned up")
}

func cleanupManifest(t *testing.T, values string) string {
	t.Helper()
	return bed.ManifestFile(t, bed.Render(t, "--show-only", "templates/cleanup.yaml", "--set", values))
}

// install applies the manifest and reads the object of that type in it.
func (d *deployed) install(t *testing.T, manifest string, into runtime.Object) {
	t.Helper()
	if err := d.cluster.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	for _, object := range readManifest(t, manifest) {
		if object.GetKind() == reflect.TypeOf(into).Elem().Name() {
			convert(t, object, into)
			return
		}
	}
	t.Fatalf("%s has no %T", manifest, into)
}

// succeeds waits until the Job has succeeded, with no pod failed, and checks what
// its pod has said.
func (d *deployed) succeeds(t *testing.T, job *batchv1.Job, texts ...string) {
	t.Helper()
	cluster.Eventually(t, "the end of Job "+job.Name, func() error {
		now, err := d.cluster.Client().BatchV1().Jobs(job.Namespace).Get(t.Context(), job.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case now.Status.Failed > 0:
			t.Fatalf("a pod of Job %s failed:\n%s", job.Name, d.logOf(t, job.Name))
		case now.Status.Succeeded == 0:
			return fmt.Errorf("status %+v", now.Status)
		}
		return nil
	})
	says := d.logOf(t, job.Name)
	t.Logf("Job %s:\n%s", job.Name, says)
	for _, text := range texts {
		if !strings.Contains(says, text) {
			t.Errorf("Job %s does not say %q", job.Name, text)
		}
	}
}

// logOf reads what the pods of a Job have said.
func (d *deployed) logOf(t *testing.T, job string) string {
	t.Helper()
	logs, err := filepath.Glob(d.kubelet.HostPath("/var/log/pods/" + namespace + "_" + job + "-*/*/*.log"))
	if err == nil && len(logs) == 0 {
		err = errors.New("no pod of Job " + job + " has a log")
	}
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
