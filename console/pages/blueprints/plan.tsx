/** A plan: the changes of an apply, with a diff of each changed field. */
import { useState } from 'preact/hooks'
import type { ApplyResult, Change, FieldDifference } from '../../../protocol/blueprints/schema.ts'
import { Button } from '../../design/button.tsx'
import { Badge, Notice, type Tone } from '../../design/states.tsx'
import { Differences } from '../../editor/differences.tsx'
import { countsOf, fieldText, sortedChanges } from './groups.ts'
import { blueprintsText as text } from './text.ts'

const looks: Readonly<Record<Change['action'], { readonly tone: Tone; readonly word: string }>> = {
  created: { tone: 'good', word: text.create },
  updated: { tone: 'info', word: text.update },
  adopted: { tone: 'accent', word: text.adopt },
  unchanged: { tone: 'neutral', word: text.keep },
  deleted: { tone: 'bad', word: text.delete },
  released: { tone: 'warn', word: text.release },
}

/** Shows a diff of each changed field. */
const Fields = ({ of }: { readonly of: readonly FieldDifference[] }) => (
  <div class="stack">
    {of.map(({ field, from, to }) => (
      <section key={field} class="stack close">
        <h3 class="mono user-text">{field}</h3>
        <Differences
          before={fieldText(from)}
          after={fieldText(to)}
          language={
            [from, to].some((value) => typeof value === 'object' && value !== null)
              ? 'json'
              : 'text'
          }
        />
      </section>
    ))}
  </div>
)

function ChangeLine({ of }: { readonly of: Change }) {
  const { resource_type, key, action, fields = [], drift = [] } = of
  const [isOpen, setOpen] = useState(false)
  const { tone, word } = looks[action]
  const head = (
    <>
      <Badge tone={tone}>{word}</Badge> <span class="soft">{resource_type}</span>{' '}
      <strong class="user-text">{key}</strong>{' '}
      {fields.length > 0 && (
        <span class="small soft user-text">{fields.map(({ field }) => field).join(', ')}</span>
      )}
      {drift.length > 0 && <Badge tone="warn">{text.drift}</Badge>}
    </>
  )
  if (fields.length === 0 && drift.length === 0) return <li class="change">{head}</li>
  return (
    <li class="change">
      <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>{head}</summary>
        {isOpen && (
          <div class="stack inside">
            {fields.length > 0 && <Fields of={fields} />}
            {drift.length > 0 && (
              <>
                <h3>{text.driftOf}</h3>
                <p class="mono user-text">{drift.map(({ field }) => field).join(', ')}</p>
              </>
            )}
          </div>
        )}
      </details>
    </li>
  )
}

/** Shows a plan, or the outcome of an apply. Unchanged resources are hidden initially. */
export function Plan({
  of: { changes, orphans = [] },
  prune,
}: {
  readonly of: ApplyResult
  readonly prune: boolean
}) {
  const [all, setAll] = useState(false)
  const sorted = sortedChanges(changes)
  const unchanged = sorted.filter(({ action }) => action === 'unchanged').length
  const shown = all ? sorted : sorted.filter(({ action }) => action !== 'unchanged')
  return (
    <div class="stack">
      <div class="row" role="status">
        {countsOf(changes).map(([action, count]) => (
          <Badge key={action} tone={looks[action].tone}>
            {count} {looks[action].word}
          </Badge>
        ))}
      </div>
      {shown.length === 0 ? (
        <p>{text.nothing}</p>
      ) : (
        <ul class="card changes-list">
          {shown.map((change) => (
            <ChangeLine key={`${change.resource_type} ${change.key}`} of={change} />
          ))}
        </ul>
      )}
      {!all && unchanged > 0 && (
        <div>
          <Button kind="quiet" onClick={() => setAll(true)}>
            {text.showUnchanged(unchanged)}
          </Button>
        </div>
      )}
      {orphans.length > 0 && !prune && (
        <Notice tone="warn">
          <strong>{text.orphans}</strong>
          <ul>
            {orphans.map(({ resource_type, resource_id, key }) => (
              <li key={resource_id} class="user-text">
                {resource_type} {key}
              </li>
            ))}
          </ul>
          {text.orphansHint}
        </Notice>
      )}
    </div>
  )
}
