/**
 * The screen of a terminal: xterm.js in an element, connected to the environment. It has the size of
 * the element and the theme of the console. This module is loaded when a terminal is opened.
 */
import { effect } from '@preact/signals'
import { FitAddon } from '@xterm/addon-fit'
import { Terminal as Xterm } from '@xterm/xterm'
import { theme } from '../../../shell/theme.ts'
import { environmentsText as text } from '../text.ts'
import { openTerminal } from './socket.ts'
import { permitTerminalStyles } from './styled-elements.ts'

export interface TerminalScreen {
  /** Sets whether the output is read to users of screen readers. */
  setReader(on: boolean): void
  /** Closes the terminal and removes the screen. */
  close(): void
}
interface ScreenOptions {
  /** The path of the terminal's WebSocket. */
  readonly path: string
  readonly reader: boolean
  readonly onOpened: () => void
  /** Receives the reason why the terminal ended. */
  readonly onEnded: (reason: string) => void
  /** Called for the keys that move the focus out of the terminal. */
  readonly onLeave: () => void
}

/** Opens a terminal in an element, whose content is replaced. */
export function openScreen(
  element: HTMLElement,
  { path, reader, onOpened, onEnded, onLeave }: ScreenOptions,
): TerminalScreen {
  element.textContent = ''
  const forbidStyles = permitTerminalStyles(document)
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
    onLeave()
    return false
  })
  const closeTerminal = connect(xterm, path, { onOpened, onEnded })
  const observer = new ResizeObserver(() => {
    if (element.clientWidth > 0) fit.fit()
  })
  observer.observe(element)
  const unfollowTheme = effect(() => {
    // Reading the theme makes the effect run again when the theme changes.
    void theme.value
    requestAnimationFrame(() => {
      xterm.options.theme = colours()
    })
  })
  return {
    setReader: (on) => {
      xterm.options.screenReaderMode = on
    },
    close: () => {
      unfollowTheme()
      observer.disconnect()
      closeTerminal()
      xterm.dispose()
      forbidStyles()
    },
  }
}

/** Connects xterm.js to a terminal of the environment. Returns a function that closes it. */
function connect(
  xterm: Xterm,
  path: string,
  { onOpened, onEnded }: Pick<ScreenOptions, 'onOpened' | 'onEnded'>,
): () => void {
  const size = { columns: xterm.cols, rows: xterm.rows }
  const terminal = openTerminal(path, size, {
    opened: () => {
      onOpened()
      xterm.focus()
    },
    output: (bytes) => new Promise((done) => xterm.write(bytes, done)),
    ended: (how) => onEnded('code' in how ? text.exited(how.code) : (how.message ?? text.lost)),
  })
  const encoder = new TextEncoder()
  xterm.onData((typed) => terminal.write(encoder.encode(typed)))
  xterm.onBinary((typed) =>
    terminal.write(Uint8Array.from(typed, (sign) => sign.charCodeAt(0) & 0xff)),
  )
  xterm.onResize(({ cols, rows }) => terminal.resize(cols, rows))
  return () => terminal.close()
}

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
