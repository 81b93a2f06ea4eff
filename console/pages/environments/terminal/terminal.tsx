/** A terminal in an environment, drawn by xterm.js. It is closed when the user leaves the page. */
import { effect } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { requestOf } from '../../../api/client.ts'
import { Button } from '../../../design/button.tsx'
import { Empty, Notice } from '../../../design/states.tsx'
import { guardLeaving } from '../../../router/router.ts'
import { may } from '../../../shell/session.ts'
import { theme } from '../../../shell/theme.ts'
import { environmentsText as text } from '../text.ts'

const PERMISSION = 'actions.execute.environment.bash'
type State =
  | { readonly is: 'closed' }
  | { readonly is: 'opening' | 'open' }
  | { readonly is: 'ended'; readonly reason: string }

/** Returns the colours of the console in the form that xterm.js accepts. */
function colours(): Record<string, string> {
  const probe = document.createElement('i')
  document.body.append(probe)
  const colour = (property: string): string => {
    probe.style.color = `var(${property})`
    return getComputedStyle(probe).color
  }
  const [text, paper, accent, soft] = ['--text', '--paper', '--accent', '--soft'].map(colour)
  const found = {
    foreground: text ?? '',
    background: paper ?? '',
    cursor: accent ?? '',
    cursorAccent: paper ?? '',
    selectionBackground: colour('--accent-soft'),
    red: colour('--bad'),
    green: colour('--good'),
    yellow: colour('--warn'),
    blue: accent ?? '',
    cyan: colour('--info'),
    brightBlack: soft ?? '',
  }
  probe.remove()
  return found
}

/**
 * Shows a terminal, which is opened on request.
 * @param props.hidden whether another tab is shown. The terminal stays open in the meantime.
 */
export function TerminalPart({
  project,
  id,
  hidden,
}: {
  readonly project: string
  readonly id: string
  readonly hidden: boolean
}) {
  const [state, setState] = useState<State>({ is: 'closed' })
  const [reader, setReader] = useState(false)
  const frame = useRef<HTMLDivElement>(null)
  const leave = useRef<HTMLDivElement>(null)
  const parts = useRef<{ readonly stop: () => void; reader(on: boolean): void } | undefined>(
    undefined,
  )
  const live = state.is === 'opening' || state.is === 'open'
  useEffect(() => (live ? guardLeaving(() => text.leaving, { tabs: false }) : undefined), [live])
  useEffect(() => () => parts.current?.stop(), [])
  useEffect(() => parts.current?.reader(reader), [reader])
  const open = async (): Promise<void> => {
    parts.current?.stop()
    setState({ is: 'opening' })
    const [{ Terminal: Xterm }, { FitAddon }, { openTerminal }, { permitTerminalStyles }] =
      await Promise.all([
        import('@xterm/xterm'),
        import('@xterm/addon-fit'),
        import('./socket.ts'),
        import('./styled-elements.ts'),
      ])
    const element = frame.current
    if (!element) return
    element.textContent = ''
    const forbid = permitTerminalStyles(document)
    const xterm = new Xterm({
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
      fontSize: 13,
      cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
      screenReaderMode: reader,
      minimumContrastRatio: 4.5,
      scrollback: 5000,
      theme: colours(),
    })
    const fit = new FitAddon()
    xterm.loadAddon(fit)
    xterm.open(element)
    fit.fit()
    xterm.attachCustomKeyEventHandler((event) => {
      if (!(event.ctrlKey && event.shiftKey && event.key === 'Escape')) return true
      event.preventDefault()
      leave.current?.querySelector('button')?.focus()
      return false
    })
    const { path } = requestOf('environment.terminal', { project, environment_id: id })
    const size = { columns: xterm.cols, rows: xterm.rows }
    const terminal = openTerminal(path, size, {
      opened: () => {
        setState({ is: 'open' })
        xterm.focus()
      },
      output: (bytes) => new Promise((done) => xterm.write(bytes, done)),
      ended: (how) =>
        setState({
          is: 'ended',
          reason: 'code' in how ? text.exited(how.code) : (how.message ?? text.lost),
        }),
    })
    const encoder = new TextEncoder()
    xterm.onData((typed) => terminal.write(encoder.encode(typed)))
    xterm.onBinary((typed) =>
      terminal.write(Uint8Array.from(typed, (sign) => sign.charCodeAt(0) & 0xff)),
    )
    xterm.onResize(({ cols, rows }) => terminal.resize(cols, rows))
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) fit.fit()
    })
    observer.observe(element)
    const unfollow = effect(() => {
      // Reading the theme makes the effect run again when the theme changes.
      void theme.value
      requestAnimationFrame(() => {
        xterm.options.theme = colours()
      })
    })
    parts.current = {
      reader: (on) => {
        xterm.options.screenReaderMode = on
      },
      stop() {
        unfollow()
        observer.disconnect()
        terminal.close()
        xterm.dispose()
        forbid()
        parts.current = undefined
      },
    }
  }
  const end = (): void => {
    parts.current?.stop()
    setState({ is: 'closed' })
  }
  if (!may(PERMISSION))
    return (
      <div hidden={hidden}>
        <Empty icon="keys" title={text.mayNot}>
          <p>{text.mayNotHint(PERMISSION)}</p>
        </Empty>
      </div>
    )
  return (
    <div class="stack close" hidden={hidden}>
      {state.is === 'closed' ? (
        <section class="card">
          <Empty icon="environments" title={text.terminal}>
            <p>{text.terminalHint}</p>
            <Button kind="primary" onClick={open}>
              {text.openTerminal}
            </Button>
          </Empty>
        </section>
      ) : (
        <div class="row apart" ref={leave}>
          <div class="row">
            {live ? (
              <Button icon="stop" onClick={end}>
                {text.end}
              </Button>
            ) : (
              <Button kind="primary" onClick={open}>
                {text.again}
              </Button>
            )}
            <Button kind="quiet" pressed={reader} onClick={() => setReader(!reader)}>
              {text.reader}
            </Button>
          </div>
          <span class="small soft">{text.leaveKeys}</span>
        </div>
      )}
      <div role="status">
        {state.is === 'opening' && <p class="soft">{text.opening}</p>}
        {state.is === 'ended' && <Notice>{state.reason}</Notice>}
      </div>
      <div
        ref={frame}
        class="terminal-frame"
        hidden={state.is === 'closed'}
        role="group"
        aria-label={text.terminal}
      />
    </div>
  )
}
