/** Unsent drafts, which survive a reload and an upgrade. */
import { useEffect, useState } from 'preact/hooks'
import { store, stored } from './theme.ts'

/** Maximum length in characters. A longer draft is not stored, so it is lost on reload. */
const MAX_CHARACTERS = 1_000_000

/**
 * Keeps a draft in the browser's storage under a key until it is cleared.
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
      // A text that is too long is not stored at all, because a part of it, such as an incomplete
      // definition, would be useless.
      store(name, next === '' || next.length > MAX_CHARACTERS ? undefined : next)
    },
  ]
}
