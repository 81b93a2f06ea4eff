/** Texts that a person has begun and not sent. They outlive a reload and an upgrade. */
import { useEffect, useState } from 'preact/hooks'
import { store, stored } from './theme.ts'

/** Longest draft that is kept, in characters. */
const MAX_CHARACTERS = 100_000

/**
 * Uses a text that is kept in the browser under a key until it is cleared.
 * @returns the text, and a function that changes it; '' clears it.
 */
export function useDraft(key: string): readonly [string, (text: string) => void] {
  const name = `console.draft.${key}`
  const [text, setText] = useState(() => stored(name) ?? '')
  useEffect(() => setText(stored(name) ?? ''), [name])
  return [
    text,
    (next) => {
      setText(next)
      store(name, next === '' ? undefined : next.slice(0, MAX_CHARACTERS))
    },
  ]
}
