/**
 * Warns that somebody else has changed fields of an agent that are being edited, and asks which
 * values to keep.
 */
import { Button } from '../../design/button.tsx'
import { Notice } from '../../design/states.tsx'
import { Differences } from '../../editor/differences.tsx'
import { agentsText as text } from './text.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Returns the names of the edited fields whose stored values have changed since the person began to
 * edit them.
 */
export const conflictsOf = (changes: Fields, bases: Fields, stored: Fields): readonly string[] =>
  Object.keys(changes).filter(
    (name) => JSON.stringify(stored[name]) !== JSON.stringify(bases[name]),
  )

const labels: Fields = {
  name: text.name,
  description: text.description,
  system_prompt: text.instructions,
  model_route: text.route,
  model: text.model,
  thinking_effort: text.effort,
  timeout_seconds: text.timeout,
  tool_presentation: text.presentation,
  memory_context: text.memoryContext,
  compaction_policy: text.compaction,
}
const shown = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? text.noValue)

/**
 * Shows the stored values. For the instructions, shows the differences between the stored and the
 * edited text.
 */
export const Conflict = ({
  names,
  changes,
  stored,
  onKeep,
  onTake,
}: {
  readonly names: readonly string[]
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
          {name === 'system_prompt' ? (
            <Differences
              before={shown(stored[name] ?? '')}
              after={shown(changes[name])}
              language="text"
            />
          ) : (
            <span class="user-text">{text.storedValue(shown(stored[name]))}</span>
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
