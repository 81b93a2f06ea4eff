/**
 * Keyboard shortcuts and commands. Pages add commands while they are shown. The command palette
 * lists them.
 */
import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import type { IconName } from '../design/icons.tsx'

/** A command of the palette. */
export interface Command {
  /** Unique among the commands that are shown together. */
  readonly id: string
  readonly label: string
  readonly icon?: IconName
  /** A key, such as `r`, or keys in sequence, such as `g r`. Ignored in text fields and dialogs. */
  readonly keys?: string
  readonly run: () => void
}

/** The commands of all mounted components. */
export const commands = signal<readonly Command[]>([])

/**
 * Registers commands while a component is mounted. `changes` lists the dependencies of the
 * commands.
 */
export function useCommands(own: readonly Command[], changes: readonly unknown[]): void {
  // Registered before the browser paints, so that the keys work as soon as the component is
  // visible.
  useLayoutEffect(() => {
    commands.value = [...commands.peek(), ...own]
    return () => {
      commands.value = commands.peek().filter((one) => !own.includes(one))
    }
  }, changes)
}

/** Maximum time between the two keys of a sequence. */
const SEQUENCE_MS = 1200
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

/** Runs commands by their keys. `openPalette` runs for Ctrl-K and Command-K. Called once. */
export function listenForKeys(openPalette: () => void): void {
  let before = ''
  let at = 0
  addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      openPalette()
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    if (document.querySelector('dialog[open]')) return
    const sequence = event.timeStamp - at < SEQUENCE_MS ? `${before} ${event.key}` : event.key
    const found =
      commands.peek().findLast(({ keys }) => keys === sequence) ??
      commands.peek().findLast(({ keys }) => keys === event.key)
    before = event.key
    at = event.timeStamp
    if (!found) return
    event.preventDefault()
    before = ''
    found.run()
  })
}
