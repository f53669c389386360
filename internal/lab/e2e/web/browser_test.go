package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// bin is the directory with the programs under test, built once.
var bin string

func TestMain(m *testing.M) {
	programs.Main(hermetic.Options{Limit: limit}, func(dir string) int {
		bin = dir
		defer closeBrowser()
		return m.Run()
	})
}

// timeout is how long something may take that must happen: far above any
// machine's noise.
const timeout = 60 * time.Second

// chromium is the browser of all tests of this package; it starts with the first.
var chromium struct {
	once sync.Once
	ctx  context.Context
	stop []context.CancelFunc
	err  error
}

func closeBrowser() {
	for _, stop := range chromium.stop {
		stop()
	}
}

// browser is the running browser. The test is skipped where there is none.
func browser(t testing.TB) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		path, err = exec.LookPath("google-chrome")
	}
	if err != nil {
		t.Skip("there is no chromium or google-chrome here: tools/setup test installs it on Debian; on Ubuntu it is a snap")
	}
	chromium.once.Do(func() {
		o := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(timeout),
			chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		)
		alloc, stop := chromedp.NewExecAllocator(context.Background(), o...)
		ctx, cancel := chromedp.NewContext(alloc)
		chromium.ctx, chromium.stop = ctx, []context.CancelFunc{cancel, stop}
		chromium.err = chromedp.Do(ctx, chromedp.Navigate("about:blank"))
	})
	if chromium.err != nil {
		t.Fatalf("starting the browser: %v", chromium.err)
	}
	return chromium.ctx
}

// look is a viewport: its size and colour scheme.
type look struct {
	width, height int64
	dark          bool
}

var (
	telephone = look{390, 844, false}
	desk      = look{1280, 900, false}
)

// tab is a page in the browser.
type tab struct {
	testing.TB
	ctx context.Context

	mu      sync.Mutex
	foreign bool     // a foreign page, which may log anything on the console
	console []string // what must not be there
}

// open opens an address and waits until the page shows something.
func open(t testing.TB, l look, url string) *tab {
	t.Helper()
	b := newTab(t, l)
	b.visit(url)
	return b
}

// newTab opens a tab that shows nothing yet.
func newTab(t testing.TB, l look) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser(t))
	ctx, end := context.WithTimeout(ctx, 10*timeout)
	b := &tab{TB: t, ctx: ctx}
	done := make(chan struct{})
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(l.width, l.height)); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	go func() {
		defer close(done)
		for m, err := range chromedp.Console(ctx) {
			if err != nil {
				return
			}
			b.note(m)
		}
	}()
	t.Cleanup(func() {
		end()
		cancel()
		<-done
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, line := range b.console {
			t.Errorf("the console says %s", line)
		}
	})
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

// visit goes to another address in the tab.
func (b *tab) visit(url string) {
	b.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Navigate(url)); err != nil {
		b.Fatalf("opening %s: %v", url, err)
	}
	b.until("the page shows something", `document.querySelector("main") !== null && document.querySelector("main").children.length > 0`)
}

// expected are answers of the API that are no fault: what is not there, or not
// for this viewer, is said on the page, and who is told to wait asks again.
var (
	expected = regexp.MustCompile(`/api/v1/(processes/\d+/map|failures/\w+/page|fleet|past|said|watch|snapshot)`)
	wait     = regexp.MustCompile(`status of (429|503)`)
)

// stopped has the addresses of servers that a test has stopped: what the page asks
// them meanwhile is refused.
var stopped sync.Map

// refused reports whether a message is about a request to a server that is stopped.
func refused(m chromedp.ConsoleMessage) (yes bool) {
	if !strings.Contains(m.Text, "net::ERR_") {
		return false
	}
	stopped.Range(func(url, _ any) bool {
		yes = strings.HasPrefix(m.URL, url.(string)+"/")
		return !yes
	})
	return yes
}

func (b *tab) note(m chromedp.ConsoleMessage) {
	switch string(m.Type) {
	case "error", "exception", "assert", "warning":
	default:
		return
	}
	if strings.Contains(m.Text, "Failed to load resource") && (expected.MatchString(m.URL) || wait.MatchString(m.Text) || refused(m)) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.foreign {
		return
	}
	b.console = append(b.console, fmt.Sprintf("%s: %s (%s:%d)", m.Type, m.Text, m.URL, m.Line))
}

// eval is the value of an expression in the page.
func eval[T any](b *tab, expr string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expr, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expr, err)
	}
	return v
}

// until waits until an expression holds.
func (b *tab) until(what, expr string) {
	b.Helper()
	for end := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		if ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expr, chromedp.EvalAwaitPromise)); err == nil && ok {
			return
		} else if time.Now().After(end) {
			text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
			b.Fatalf("it never came to this: %s (%s, %v); the page is %s", what, expr, err, text)
		}
	}
}

// says waits until the page has a text.
func (b *tab) says(text string) {
	b.Helper()
	b.until("the page says "+text, fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// press types a key.
func (b *tab) press(key string) {
	b.Helper()
	if err := chromedp.Do(b.ctx, chromedp.KeyEvent(key)); err != nil {
		b.Fatal(err)
	}
}

// fitsWidth holds the page against the window: it never scrolls sideways.
func (b *tab) fitsWidth(where string) {
	b.Helper()
	if w := eval[[]int](b, `[document.documentElement.scrollWidth, innerWidth]`); w[0] > w[1] {
		wide := eval[string](b, `[...document.querySelectorAll("main *, header *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).slice(0, 5).map(e => e.tagName + "." + e.className).join(" ")`)
		b.Errorf("%s is %d px wide in a window of %d: %s", where, w[0], w[1], wide)
	}
	// A text is not broken within a word to fit its column, and none leaves its card.
	if out := eval[string](b, `[...document.querySelectorAll(".card dt, .card dd")].filter(e => { const r = document.createRange(); r.selectNodeContents(e);
		return r.getBoundingClientRect().right > e.closest(".card").getBoundingClientRect().right || e.tagName === "DT" && r.getClientRects().length > 1; }).slice(0, 5).map(e => e.innerText).join(", ")`); out != "" {
		b.Errorf("%s: does not fit into its card: %s", where, out)
	}
}

// shoot keeps a picture where pictures are wanted.
func (b *tab) shoot(name string) {
	b.Helper()
	dir := os.Getenv("PAGE_SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.Fatal(err)
	}
}
