/**
 * Warns that somebody else has changed fields of a record that are being edited, and asks which
 * values to keep.
 */
import { Button } from '../design/button.tsx'
import { Notice } from '../design/states.tsx'
import { Differences } from '../editor/differences.tsx'
import { formText as text } from './text.ts'

type Fields = Readonly<Record<string, unknown>>
const isPair = (value: unknown): value is { readonly key: string; readonly value: string } =>
  typeof value === 'object' && value !== null && 'key' in value && 'value' in value
const shown = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : Array.isArray(value) && value.every(isPair)
      ? value.map((pair) => `${pair.key}=${pair.value}`).join(', ')
      : (JSON.stringify(value) ?? '')

/** Shows the stored values. For long texts, shows the differences to the edited texts. */
export const Conflict = ({
  names,
  labels,
  long = [],
  changes,
  stored,
  onKeep,
  onTake,
}: {
  readonly names: readonly string[]
  /** The labels of the fields, by name. */
  readonly labels: Fields
  /** Names of the fields with long texts. */
  readonly long?: readonly string[]
  readonly changes: Fields
  readonly stored: Fields
  /** Keeps the edited values. */
  readonly onKeep: () => void
  /** Replaces the edited values with the stored ones. */
  readonly onTake: () => void
}) => (
  <Notice tone="warn">
    <div class="stack close">
      {names.map((name) => (
        <div key={name} class="stack close">
          <strong>{text.changedMeanwhile(String(labels[name] ?? name))}</strong>
          {long.includes(name) ? (
            <Differences
              before={shown(stored[name] ?? '')}
              after={shown(changes[name])}
              language="text"
            />
          ) : (
            <span class="user-text">{text.storedValue(shown(stored[name]) || text.noValue)}</span>
          )}
        </div>
      ))}
      <div class="row">
        <Button onClick={onKeep}>{text.keepMine}</Button>
        <Button onClick={onTake}>{text.takeTheirs}</Button>
      </div>
    </div>
  </Notice>
)
