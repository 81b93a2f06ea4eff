/**
 * The code editor, based on CodeMirror. This module is large and is loaded on demand.
 *
 * Invariant: styles carry the nonce of the document, and colours come from the design tokens.
 */
import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { yaml } from '@codemirror/lang-yaml'
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language'
import { type Diagnostic, forceLinting, linter, lintGutter, lintKeymap } from '@codemirror/lint'
import { Annotation, EditorState, type Extension } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
  placeholder,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { contextAt } from './context.ts'
import type { ShownFault } from './faults.ts'
import type { Language } from './located.ts'
import { search } from './search.ts'
import { type Schema, suggest } from './suggestions.ts'

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.content], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.keyword], color: 'var(--info)' },
  { tag: [tags.comment, tags.lineComment, tags.meta], color: 'var(--soft)' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

/** Extensions of every code view, including read-only ones. */
export const codeViewExtensions = (language: Language | 'text'): Extension => [
  EditorView.cspNonce.of(document.documentElement.dataset['nonce'] ?? ''),
  language === 'json' ? json() : language === 'yaml' ? yaml() : [],
  syntaxHighlighting(colours),
  EditorView.lineWrapping,
  lineNumbers(),
  EditorState.tabSize.of(2),
]

/** Options of an editor. */
export interface CodeOptions {
  readonly parent: HTMLElement
  readonly label: string
  readonly text: string
  readonly language: Language | 'text'
  readonly readOnly: boolean
  readonly hint?: string
  readonly describedBy?: string
  readonly schema: () => Schema | undefined
  readonly faults: (text: string) => readonly ShownFault[]
  readonly onText: (text: string) => void
  readonly onFaults: (faults: readonly ShownFault[]) => void
  /** Called on Ctrl-Enter or Command-Enter, and on Ctrl-S or Command-S. */
  readonly onSubmit: () => void
}
/** An open editor. */
export interface CodeEditor {
  /** Replaces the text if it differs. */
  setText(text: string): void
  /** Checks the text immediately. */
  check(): void
  /** Puts the cursor at an offset. */
  goTo(offset: number): void
  focus(): void
  close(): void
}

/** Marks changes that `setText` makes. They are not reported to `onText`. */
const external = Annotation.define<boolean>()
/** Marks a request to check an unchanged text again. */
const again = Annotation.define<boolean>()

const completions =
  (language: Language, schema: CodeOptions['schema']) =>
  (context: CompletionContext): CompletionResult | null => {
    const root = schema()
    if (!root) return null
    const text = context.state.doc.toString()
    const found = contextAt(text, context.pos, language)
    if (!found) return null
    if (!context.explicit && found.from === context.pos && !found.quoted) return null
    const { from, quoted, kind } = found
    const closed = quoted && text[context.pos] === '"'
    const options = suggest(root, found).map((one): Completion => {
      const { value, detail, info, required } = one
      const shown = kind === 'name' ? value : value.replace(/^"(.*)"$/, '$1')
      const text = language === 'yaml' ? yamlOf(one.value, kind) : jsonOf(one.value, kind)
      return {
        label: shown,
        type: kind === 'name' ? 'property' : 'enum',
        ...(detail !== undefined && { detail }),
        ...(info !== undefined && { info }),
        ...(required && { boost: 50 }),
        apply: (view, _, start, end) => {
          const begin = quoted ? start - 1 : start
          const stop = closed ? end + 1 : end
          const follows = /^\s*:/.test(view.state.sliceDoc(stop, stop + 20))
          const insert = follows ? text.replace(/:\s*$/, '') : text
          view.dispatch({
            changes: { from: begin, to: stop, insert },
            selection: { anchor: begin + insert.length },
          })
        },
      }
    })
    return options.length === 0 ? null : { from, options, validFor: /^[\w.$-]*$/ }
  }
const jsonOf = (value: string, kind: 'name' | 'value'): string =>
  kind === 'name' ? `${JSON.stringify(value)}: ` : value
const yamlOf = (value: string, kind: 'name' | 'value'): string =>
  kind === 'name' ? `${value}: ` : value.replace(/^"([A-Za-z_][\w.-]*)"$/, '$1')

/** Creates a CodeMirror editor in `options.parent`. */
export function openCode(options: CodeOptions): CodeEditor {
  const { parent, label, text, language, readOnly, hint, describedBy } = options
  const check = (view: EditorView): Diagnostic[] => {
    const faults = options.faults(view.state.doc.toString())
    options.onFaults(faults)
    return faults.map(({ from, to, field, message }) => ({
      from,
      to,
      severity: 'error',
      message: field === '' ? message : `${field}: ${message}`,
    }))
  }
  const submit = (): boolean => {
    options.onSubmit()
    return true
  }
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      codeViewExtensions(language),
      EditorView.contentAttributes.of({
        'aria-label': label,
        spellcheck: 'false',
        ...(describedBy !== undefined && { 'aria-describedby': describedBy }),
        ...(readOnly && { tabindex: '0', 'aria-readonly': 'true' }),
      }),
      search(),
      foldGutter(),
      drawSelection(),
      bracketMatching(),
      readOnly
        ? [EditorState.readOnly.of(true), EditorView.editable.of(false)]
        : [
            history(),
            indentOnInput(),
            closeBrackets(),
            highlightActiveLine(),
            placeholder(hint ?? ''),
            language === 'text'
              ? []
              : [
                  autocompletion({
                    override: [completions(language, options.schema)],
                    icons: false,
                  }),
                  lintGutter(),
                  linter(check, {
                    delay: 300,
                    needsRefresh: ({ transactions }) =>
                      transactions.some((one) => one.annotation(again)),
                  }),
                ],
          ],
      keymap.of([
        { key: 'Mod-Enter', run: submit },
        { key: 'Mod-s', run: submit },
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...lintKeymap,
        ...foldKeymap,
        ...historyKeymap,
        ...defaultKeymap,
        ...(readOnly ? [] : [indentWithTab]),
        {
          // Escape must not close a dialog around the editor. For two seconds after Escape, Tab
          // leaves the editor.
          key: 'Escape',
          run: (view) => {
            view.setTabFocusMode(2000)
            return true
          },
        },
      ]),
      EditorView.updateListener.of(({ docChanged, state, transactions }) => {
        if (docChanged && !transactions.some((one) => one.annotation(external)))
          options.onText(state.doc.toString())
      }),
    ],
  })
  return {
    setText(next) {
      if (next === view.state.doc.toString()) return
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: next },
        annotations: external.of(true),
      })
    },
    check() {
      view.dispatch({ annotations: again.of(true) })
      forceLinting(view)
    },
    goTo(offset) {
      view.dispatch({
        selection: { anchor: Math.min(offset, view.state.doc.length) },
        effects: EditorView.scrollIntoView(Math.min(offset, view.state.doc.length), {
          y: 'center',
        }),
      })
      view.focus()
    },
    focus: () => view.focus(),
    close: () => view.destroy(),
  }
}
