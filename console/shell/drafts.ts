/**
 * Unsent drafts, which survive a reload and an upgrade. They are shown only to the person who wrote
 * them, and are removed when this person signs out.
 */
import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { store, stored } from './theme.ts'

const PREFIX = 'console.drafts.'
/** Prefix of the drafts of earlier versions, which recorded no owner. */
const OLD_PREFIX = 'console.draft.'
const prefixOf = (owner: string): string => `${PREFIX}${owner}.`

/** The id of the person whose drafts are shown. Set by `session.ts`. */
export const draftOwner = signal('')
/** Returns the name under which a draft is stored. */
export const draftName = (owner: string, key: string): string => prefixOf(owner) + key

function removeAll(prefix: string): void {
  let names: string[] = []
  try {
    names = Object.keys(localStorage)
  } catch {
    // Without storage, there are no drafts.
  }
  for (const name of names) if (name.startsWith(prefix)) store(name, undefined)
}
/** Removes the drafts of a person. */
export const removeDrafts = (owner: string): void => removeAll(prefixOf(owner))
/** Removes drafts whose owner is not known. */
export const removeOldDrafts = (): void => removeAll(OLD_PREFIX)

/** Maximum length in characters. A longer draft is not stored, so it is lost on reload. */
const MAX_CHARACTERS = 1_000_000

/**
 * Keeps a draft in the browser's storage under a key until it is cleared.
 * @returns the text, and a function that changes it; '' clears it.
 */
export function useDraft(key: string): readonly [string, (text: string) => void] {
  const name = draftName(draftOwner.value, key)
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
