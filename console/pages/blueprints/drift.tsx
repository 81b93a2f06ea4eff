/** Fields of a blueprint's resources that were changed since the last apply. */
import { useQuery } from '../../api/query.ts'
import { Badge, Empty, Show } from '../../design/states.tsx'
import { bindingKinds } from './binding-kinds.ts'
import { fieldText } from './groups.ts'
import { blueprintsText as text } from './text.ts'

/** Lists the changed and deleted resources, with the values of their changed fields. */
export function Drift({
  project,
  namespace,
  blueprint,
}: {
  readonly project: string
  readonly namespace: string
  readonly blueprint: string
}) {
  const { state, reload } = useQuery(
    'blueprint.drift',
    {
      project,
      blueprint_key: blueprint,
      ...(namespace !== '' && { namespace }),
      include: ['further_types'],
    },
    { kinds: bindingKinds },
  )
  return (
    <Show of={state.value} retry={reload}>
      {({ items }) => {
        const drifted = items.filter((one) => one.state !== 'unchanged')
        return drifted.length === 0 ? (
          <Empty icon="check" title={text.noDrift} />
        ) : (
          <div class="stack">
            <p class="soft">
              {text.driftHint} {text.applyAgain}
            </p>
            {drifted.map(({ resource_type, key, resource_id, state: now, fields }) => (
              <section key={resource_id} class="card">
                <header>
                  <h2>
                    <span class="soft">{resource_type}</span> <span class="user-text">{key}</span>
                  </h2>
                  <Badge tone={now === 'deleted' ? 'bad' : 'warn'}>{text[now]}</Badge>
                </header>
                {fields.length > 0 && (
                  <dl class="facts body">
                    {fields.map(({ field, to }) => [
                      <dt key={`${field} name`} class="mono user-text">
                        {field}
                      </dt>,
                      <dd key={field}>
                        <pre class="user-text">{fieldText(to)}</pre>
                      </dd>,
                    ])}
                  </dl>
                )}
              </section>
            ))}
          </div>
        )
      }}
    </Show>
  )
}
