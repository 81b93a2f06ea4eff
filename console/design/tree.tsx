/**
 * Shows JSON as a tree. Only opened parts are rendered, and long arrays, objects and texts are
 * truncated, so that a value of any size can be shown.
 */
import { useState } from 'preact/hooks'
import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'
import { designText as text } from './text.ts'

/** Number of members that are shown initially. */
const INITIAL_MEMBERS = 100
/** Number of characters of a text that are shown initially. */
const INITIAL_CHARACTERS = 2000
/**
 * Depth below which members are shown only on request, so that the page does not become too wide.
 */
const MAX_DEPTH = 40

/** Shows a JSON value. `open` is the number of levels that are open initially. */
export const Tree = ({ value, open = 1 }: { readonly value: unknown; readonly open?: number }) => (
  <div class="code-frame">
    <div class="tree">
      <Value value={value} open={open} depth={0} />
    </div>
    <CopyButton value={() => JSON.stringify(value, undefined, 2)} />
  </div>
)

interface Shown {
  readonly value: unknown
  readonly open: number
  readonly depth: number
  readonly name?: string | undefined
}

function Value({ value, open, depth, name }: Shown) {
  const label = name === undefined ? null : <span class="key user-text">{name}: </span>
  if (typeof value === 'string') return <Line label={label} value={value} />
  if (value === null || typeof value !== 'object')
    return (
      <div>
        {label}
        <span class="value">{String(value)}</span>
      </div>
    )
  return <Members value={value} open={open} depth={depth} name={name} />
}

function Line({
  label,
  value,
}: {
  readonly label: preact.JSX.Element | null
  readonly value: string
}) {
  const [whole, setWhole] = useState(value.length <= INITIAL_CHARACTERS)
  return (
    <div>
      {label}
      <span class="text user-text">{whole ? value : `${value.slice(0, INITIAL_CHARACTERS)}…`}</span>
      {!whole && <Button onClick={() => setWhole(true)}>{text.showAll}</Button>}
    </div>
  )
}

function Members({ value, open, depth, name }: Shown & { readonly value: object }) {
  const [isOpen, setOpen] = useState(open > 0)
  const [shown, setShown] = useState(INITIAL_MEMBERS)
  const [further, setFurther] = useState(depth < MAX_DEPTH)
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  const size = isList ? text.items(entries.length) : text.members(entries.length)
  if (entries.length === 0)
    return (
      <div>
        {name !== undefined && <span class="key user-text">{name}: </span>}
        <span class="value">{isList ? '[]' : '{}'}</span>
      </div>
    )
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {name !== undefined && <span class="key user-text">{name} </span>}
        <span class="soft">
          {isList ? '[ ]' : '{ }'} {size}
        </span>
      </summary>
      {isOpen && !further && <Button onClick={() => setFurther(true)}>{text.deepValue}</Button>}
      {isOpen &&
        further &&
        entries
          .slice(0, shown)
          .map(([key, member]) => (
            <Value key={key} name={key} value={member} open={open - 1} depth={depth + 1} />
          ))}
      {isOpen && further && entries.length > shown && (
        <Button onClick={() => setShown(shown + 10 * INITIAL_MEMBERS)}>{text.more}</Button>
      )}
    </details>
  )
}
