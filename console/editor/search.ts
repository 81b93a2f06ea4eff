/** Search within an editor: a panel with a query, and highlighted matches. */
import { type Extension, StateEffect, StateField, type Text } from '@codemirror/state'
import {
  Decoration,
  type DecorationSet,
  EditorView,
  keymap,
  type Panel,
  showPanel,
} from '@codemirror/view'
import { editorText as text } from './text.ts'

interface Search {
  readonly open: boolean
  readonly query: string
  readonly marks: DecorationSet
  readonly matches: readonly number[]
}
/** Maximum number of highlighted matches. */
const MAX_MATCHES = 10_000
const change = StateEffect.define<{ readonly open: boolean; readonly query: string }>()

function matchesOf(document: Text, query: string): number[] {
  if (query === '') return []
  const content = document.toString().toLowerCase()
  const wanted = query.toLowerCase()
  const found: number[] = []
  for (
    let at = content.indexOf(wanted);
    at >= 0 && found.length < MAX_MATCHES;
    at = content.indexOf(wanted, at + wanted.length)
  )
    found.push(at)
  return found
}
const mark = Decoration.mark({ class: 'cm-found' })
function searchIn(document: Text, open: boolean, query: string): Search {
  const matches = open ? matchesOf(document, query) : []
  const ranges = matches.map((from) => mark.range(from, from + query.length))
  return { open, query, matches, marks: Decoration.set(ranges) }
}

const field = StateField.define<Search>({
  create: ({ doc }) => searchIn(doc, false, ''),
  update(value, transaction) {
    let { open, query } = value
    let changed = transaction.docChanged && open
    for (const effect of transaction.effects)
      if (effect.is(change)) {
        ;({ open, query } = effect.value)
        changed = true
      }
    return changed ? searchIn(transaction.newDoc, open, query) : value
  },
  provide: (self) => [
    showPanel.from(self, ({ open }) => (open ? panelOf : null)),
    EditorView.decorations.from(self, ({ marks }) => marks),
  ],
})

function move(view: EditorView, step: 1 | -1): void {
  const { matches, query } = view.state.field(field)
  if (matches.length === 0) return
  const { from } = view.state.selection.main
  const next =
    step > 0
      ? (matches.find((at) => at > from) ?? matches[0] ?? 0)
      : (matches.findLast((at) => at < from) ?? matches.at(-1) ?? 0)
  view.dispatch({
    selection: { anchor: next, head: next + query.length },
    scrollIntoView: true,
  })
}

const close = (view: EditorView): boolean => {
  const { open, query } = view.state.field(field)
  if (!open) return false
  view.dispatch({ effects: change.of({ open: false, query }) })
  view.focus()
  return true
}

function panelOf(view: EditorView): Panel {
  const dom = document.createElement('div')
  dom.className = 'row editor-search'
  const input = document.createElement('input')
  input.type = 'search'
  input.className = 'input'
  input.ariaLabel = text.find
  input.placeholder = text.find
  input.value = view.state.field(field).query
  const count = document.createElement('span')
  count.className = 'small soft'
  count.role = 'status'
  const button = (label: string, sign: string, run: () => void): HTMLButtonElement => {
    const made = document.createElement('button')
    made.type = 'button'
    made.className = 'button quiet icon'
    made.ariaLabel = label
    made.title = label
    made.textContent = sign
    made.addEventListener('click', run)
    return made
  }
  const show = (): void => {
    const { matches, query } = view.state.field(field)
    const at = matches.indexOf(view.state.selection.main.from) + 1
    count.textContent = query === '' ? '' : text.matches(at, matches.length)
  }
  input.addEventListener('input', () => {
    view.dispatch({ effects: change.of({ open: true, query: input.value }) })
    const { matches } = view.state.field(field)
    if (matches.length > 0 && !matches.includes(view.state.selection.main.from)) move(view, 1)
  })
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') move(view, event.shiftKey ? -1 : 1)
    else if (event.key === 'Escape') close(view)
    else return
    event.preventDefault()
    event.stopPropagation()
  })
  dom.append(
    input,
    count,
    button(text.previous, '↑', () => move(view, -1)),
    button(text.next, '↓', () => move(view, 1)),
    button(text.close, '×', () => close(view)),
  )
  show()
  return { dom, top: true, mount: () => input.select(), update: show }
}

/** Adds the search: Ctrl-F or Command-F opens it, Escape closes it. */
export const search = (): Extension => [
  field,
  keymap.of([
    {
      key: 'Mod-f',
      run: (view) => {
        const { from, to } = view.state.selection.main
        const chosen = view.state.sliceDoc(from, Math.min(to, from + 100))
        const query =
          chosen !== '' && !chosen.includes('\n') ? chosen : view.state.field(field).query
        view.dispatch({ effects: change.of({ open: true, query }) })
        view.dom.querySelector<HTMLInputElement>('.editor-search input')?.select()
        return true
      },
    },
    { key: 'Escape', run: close },
  ]),
]
