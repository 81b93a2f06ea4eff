/** Shows the differences between two texts, with CodeMirror. This module is loaded on demand. */
import { MergeView, unifiedMergeView } from '@codemirror/merge'
import { EditorState } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { codeViewExtensions } from './code.ts'
import type { Language } from './located.ts'
import { editorText as text } from './text.ts'

const fixed = (label: string) => [
  EditorState.readOnly.of(true),
  EditorView.editable.of(false),
  EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
]
const collapseUnchanged = { margin: 3, minSize: 6 }

/**
 * Opens the comparison of two texts.
 * @param side whether the texts are side by side, for wide screens.
 * @returns a function that closes the comparison.
 */
export function openComparison(
  parent: HTMLElement,
  before: string,
  after: string,
  language: Language | 'text',
  side: boolean,
): () => void {
  if (side) {
    const view = new MergeView({
      parent,
      a: { doc: before, extensions: [codeViewExtensions(language), fixed(text.before)] },
      b: { doc: after, extensions: [codeViewExtensions(language), fixed(text.after)] },
      collapseUnchanged,
      gutter: true,
    })
    return () => view.destroy()
  }
  const view = new EditorView({
    parent,
    doc: after,
    extensions: [
      codeViewExtensions(language),
      fixed(text.after),
      unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged }),
    ],
  })
  return () => view.destroy()
}
