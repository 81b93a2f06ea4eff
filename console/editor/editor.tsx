/**
 * An editor for JSON, YAML and plain text, with the faults of the text below it. A plain text field
 * is shown until the editor is loaded, and remains if loading fails.
 */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { FieldFault } from '../api/client.ts'
import { showError } from '../design/notify.ts'
import { loadPart } from '../router/part.ts'
import type { CodeEditor } from './code.ts'
import { faultsOfText, type ShownFault, type ValueCheck } from './faults.ts'
import type { Language } from './located.ts'
import type { Schema } from './suggestions.ts'
import { editorText as text } from './text.ts'

/** Maximum number of faults that are listed below the editor. */
const SHOWN_FAULTS = 6
const MAX_WRITTEN = 20
const none: readonly FieldFault[] = []

/** The props of an editor. */
export interface EditorProps {
  readonly label: string
  readonly value: string
  readonly onValue?: (text: string) => void
  readonly language: Language | 'text'
  /** Schema for suggestions. */
  readonly schema?: Schema | undefined
  /** Checks the parsed value during editing. */
  readonly check?: ValueCheck | undefined
  /** Faults that the service has reported, with paths relative to the value. */
  readonly faults?: readonly FieldFault[]
  readonly readOnly?: boolean
  readonly hint?: string
  /** Minimum number of visible lines. */
  readonly rows?: number
  /** Fills the height of its container instead of fitting the text. */
  readonly fill?: boolean
  /** Called on Ctrl-Enter or Command-Enter, and on Ctrl-S or Command-S. */
  readonly onSubmit?: () => void
  /** Called with the faults after each check. */
  readonly onFaults?: (faults: readonly ShownFault[]) => void
}

/** An editor for JSON, YAML or plain text. */
export function Editor(props: EditorProps) {
  const { label, value, language, readOnly = false, rows = 8, faults: given = none } = props
  const frame = useRef<HTMLDivElement>(null)
  const editor = useRef<CodeEditor | undefined>(undefined)
  const latest = useRef(props)
  latest.current = props
  /** Texts that were entered here and that the page has not yet passed back as `value`. */
  const written = useRef<string[]>([])
  const [isLoaded, setLoaded] = useState(false)
  const [faults, setFaults] = useState<readonly ShownFault[]>([])
  const id = useId()
  const faultsIn = (content: string): readonly ShownFault[] => {
    const { language: now, check, faults: reported = none } = latest.current
    return now === 'text' ? [] : faultsOfText(content, now, check, reported)
  }
  const report = (found: readonly ShownFault[]): void => {
    setFaults(found)
    latest.current.onFaults?.(found)
  }
  useEffect(() => {
    let isShown = true
    loadPart('editor', () => import('./code.ts')).then(({ openCode }) => {
      if (!isShown || !frame.current) return
      const hadFocus = frame.current.parentElement?.contains(document.activeElement)
      editor.current = openCode({
        parent: frame.current,
        label,
        text: latest.current.value,
        language,
        readOnly,
        describedBy: `${id}-hint ${id}-faults`,
        ...(latest.current.hint !== undefined && { hint: latest.current.hint }),
        schema: () => latest.current.schema,
        faults: faultsIn,
        onText: (next) => {
          written.current = [...written.current.slice(1 - MAX_WRITTEN), next]
          latest.current.onValue?.(next)
        },
        onFaults: report,
        onSubmit: () => latest.current.onSubmit?.(),
      })
      setLoaded(true)
      if (hadFocus) editor.current.focus()
    }, showError)
    return () => {
      isShown = false
      editor.current?.close()
      editor.current = undefined
      setLoaded(false)
    }
  }, [label, language, readOnly])
  useEffect(() => {
    // A `value` that was entered in this editor is not set again, because it could overwrite later
    // input.
    const at = written.current.indexOf(value)
    written.current = written.current.slice(at + 1)
    if (at < 0) editor.current?.setText(value)
  }, [value])
  useEffect(() => {
    if (readOnly) return
    if (editor.current) editor.current.check()
    else report(faultsIn(latest.current.value))
  }, [JSON.stringify(given), isLoaded])
  const lineOf = (offset: number): number => value.slice(0, offset).split('\n').length
  return (
    <div class={props.fill ? 'editor fill' : 'editor'}>
      <div
        ref={frame}
        class="editor-frame"
        style={{ '--editor-rows': rows }}
        data-loaded={isLoaded}
        hidden={!isLoaded}
      />
      {!isLoaded && (
        <textarea
          class="input mono"
          aria-label={label}
          rows={rows}
          readOnly={readOnly}
          spellcheck={false}
          value={value}
          placeholder={props.hint}
          onInput={({ currentTarget }) => props.onValue?.(currentTarget.value)}
        />
      )}
      {!readOnly && (
        <div class="small soft" id={`${id}-hint`}>
          {text.leave}
        </div>
      )}
      <ul class="editor-faults small" id={`${id}-faults`} role="status">
        {faults.slice(0, SHOWN_FAULTS).map((fault, index) => (
          <li key={index}>
            <button type="button" onClick={() => editor.current?.goTo(fault.from)}>
              <span class="soft">{text.line(lineOf(fault.from))}</span>{' '}
              {fault.field !== '' && <code class="user-text">{fault.field}</code>}{' '}
              <span class="user-text">{fault.message}</span>
            </button>
          </li>
        ))}
        {faults.length > SHOWN_FAULTS && <li>{text.moreFaults(faults.length - SHOWN_FAULTS)}</li>}
      </ul>
    </div>
  )
}
