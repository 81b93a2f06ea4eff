/** The text of a definition while it is edited, and its draft in the storage of the browser. */
import { useRef, useState } from 'preact/hooks'
import { converted, type Language, locate, write } from '../../editor/located.ts'
import { useDraft } from '../../shell/drafts.ts'
import { store, stored } from '../../shell/theme.ts'

/** An edited text: its language, and the saved version on which it is based. */
export interface Draft {
  readonly base: string
  readonly language: Language
  readonly text: string
}
/** Parses a stored draft. Returns undefined for an empty or invalid text. */
export function readDraft(kept: string): Draft | undefined {
  if (kept === '') return undefined
  try {
    const { base, language, text } = JSON.parse(kept) as Partial<Draft>
    if (typeof base !== 'string' || typeof text !== 'string') return undefined
    return { base, text, language: language === 'yaml' ? 'yaml' : 'json' }
  } catch {
    return undefined
  }
}

const LANGUAGE = 'console.definition-language'
const preferred = (): Language => (stored(LANGUAGE) === 'yaml' ? 'yaml' : 'json')

/** The state of an edited definition. */
export interface DefinitionText {
  readonly text: string
  readonly language: Language
  /** The saved definition in the current language. */
  readonly savedText: string
  readonly isChanged: boolean
  /** Whether another version was saved after editing began. */
  readonly isOutdated: boolean
  setText(text: string): void
  /** Converts the text to JSON or YAML. Returns false if the text cannot be converted. */
  setLanguage(language: Language): boolean
  /** Discards the draft. */
  discard(): void
  /**
   * Called after `text` was saved as this version. Discards the draft. If the text was changed during
   * the request, keeps the draft as a change to this version.
   */
  settle(version: string): void
  /** Keeps the draft, from now on as a change to the latest saved version. */
  keep(): void
  /** Returns the value of the text; undefined if the text is invalid. */
  read(): unknown
}

/**
 * Provides the text of a definition. Changes are kept in the browser until they are saved.
 * @param key identifies the definition among all drafts.
 * @param version changes when the definition is saved.
 */
export function useDefinition(key: string, saved: unknown, version: string): DefinitionText {
  const [kept, setKept] = useDraft(key)
  const [chosen, setChosen] = useState(preferred)
  /** The version that was saved here, until it replaces the version `before` of the caller. */
  const [settled, setSettled] = useState<{ readonly before: string; readonly version: string }>()
  const draft = readDraft(kept)
  const latest = useRef(draft)
  latest.current = draft
  const language = draft?.language ?? chosen
  const savedText = write(saved, language)
  const put = (text: string, inLanguage: Language, base: string): void =>
    setKept(
      text === write(saved, inLanguage) ? '' : JSON.stringify({ base, language: inLanguage, text }),
    )
  const text = draft?.text ?? savedText
  const current = settled?.before === version ? settled.version : version
  return {
    text,
    language,
    savedText,
    isChanged: draft !== undefined,
    isOutdated: draft !== undefined && draft.base !== current,
    setText: (next) => put(next, language, draft?.base ?? current),
    setLanguage: (next) => {
      const other = converted(text, language, next)
      if (other === undefined) return false
      store(LANGUAGE, next)
      setChosen(next)
      if (draft) put(other, next, draft.base)
      return true
    },
    discard: () => setKept(''),
    settle: (next) => {
      const now = latest.current
      setKept(!now || now.text === text ? '' : JSON.stringify({ ...now, base: next }))
      setSettled({ before: version, version: next })
    },
    keep: () => put(text, language, current),
    read: () => {
      const found = locate(text, language)
      return 'value' in found ? found.value : undefined
    },
  }
}

/** Returns a short hash of a value (32-bit FNV-1a over its JSON), for detecting changes. */
export function fingerprint(value: unknown): string {
  let hash = 0x811c9dc5
  for (const character of JSON.stringify(value) ?? '')
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193)
  return (hash >>> 0).toString(36)
}
