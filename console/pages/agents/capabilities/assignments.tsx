/** Assigns toolkits and skills to an agent, in order, and shows the tools that result from them. */
import { useState } from 'preact/hooks'
import type { ApiError } from '../../../api/client.ts'
import { call } from '../../../api/client.ts'
import { useQuery } from '../../../api/query.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { SelectField } from '../../../design/field.tsx'
import { Failure, Skeleton } from '../../../design/states.tsx'
import { may } from '../../../shell/session.ts'
import { Tools } from '../../sessions/side/details.tsx'
import { agentsText as text } from '../text.ts'

interface Named {
  readonly id: string
  readonly name: string
  readonly description?: string
}

/** Shows the toolkits, skills and tools of the agent `id`. */
export function AgentCapabilities({
  project,
  id,
}: {
  readonly project: string
  readonly id: string
}) {
  const base = `/p/${encodeURIComponent(project)}`
  const kinds = ['agent', 'toolkit', 'skill']
  const assigned = useQuery('agent.toolkits', { project, id }, { kinds })
  const toolkits = useQuery('toolkit.list', { project }, { kinds: ['toolkit'] }).state.value
  const given = useQuery('agent.skills', { project, id }, { kinds })
  const skills = useQuery('skill.list', { project }, { kinds: ['skill'] }).state.value
  return (
    <div class="pair">
      <div class="stack">
        <Assigned
          title={text.toolkits}
          none={text.noToolkits}
          add={text.addToolkit}
          all={toolkits.data?.items}
          ids={assigned.state.value.data?.items.map(({ toolkit_id }) => toolkit_id)}
          error={assigned.state.value.error ?? toolkits.error}
          link={{ href: `${base}/toolkits`, label: text.manageToolkits }}
          assign={async (toolkit_ids) => {
            await call('agent.assign_toolkits', { project, id, toolkit_ids })
            assigned.reload()
          }}
        />
        <Assigned
          title={text.skills}
          none={text.noSkills}
          add={text.addSkill}
          all={skills.data?.items}
          ids={given.state.value.data?.items.map(({ skill_id }) => skill_id)}
          error={given.state.value.error ?? skills.error}
          link={{ href: `${base}/skills`, label: text.manageSkills }}
          assign={async (skill_ids) => {
            await call('agent.assign_skills', { project, id, skill_ids })
            given.reload()
          }}
        />
      </div>
      <section class="card">
        <header>
          <h2>{text.effective}</h2>
        </header>
        <div class="body">
          <Tools project={project} id={id} />
        </div>
      </section>
    </div>
  )
}

function Assigned({
  title,
  none,
  add,
  all,
  ids,
  error,
  link,
  assign,
}: {
  readonly title: string
  readonly none: string
  readonly add: string
  readonly all: readonly Named[] | undefined
  readonly ids: readonly string[] | undefined
  readonly error: ApiError | undefined
  readonly link: { readonly href: string; readonly label: string }
  readonly assign: (ids: string[]) => Promise<void>
}) {
  const mayEdit = may('project.edit')
  // The selected entry is assigned only by the button, because the arrow keys already change the
  // selection.
  const [chosen, setChosen] = useState('')
  const known = new Map(all?.map((one) => [one.id, one]))
  const free = all?.filter(({ id }) => !ids?.includes(id)) ?? []
  const earlier = (index: number): string[] => {
    const next = [...(ids ?? [])]
    const [moved = ''] = next.splice(index, 1)
    next.splice(index - 1, 0, moved)
    return next
  }
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
        <a href={link.href}>{link.label}</a>
      </header>
      <div class="body stack">
        {error && <Failure error={error} />}
        {!ids && !error && <Skeleton lines={2} />}
        {ids?.length === 0 && <p class="soft">{none}</p>}
        {ids && ids.length > 0 && (
          <ol class="stack close" aria-label={title}>
            {ids.map((id, index) => {
              const { name, description } = known.get(id) ?? { name: id }
              return (
                <li class="assigned" key={id}>
                  <span class="grow">
                    <strong class="user-text">{name}</strong>
                    {description && <div class="soft small user-text">{description}</div>}
                  </span>
                  {mayEdit && index > 0 && (
                    <Button title={text.earlier(name)} onClick={() => assign(earlier(index))}>
                      ↑
                    </Button>
                  )}
                  {mayEdit && (
                    <IconButton
                      icon="close"
                      label={text.unassign(name)}
                      onClick={() => assign(ids.filter((one) => one !== id))}
                    />
                  )}
                </li>
              )
            })}
          </ol>
        )}
        {mayEdit && ids && free.length > 0 && (
          <div class="row assign">
            <SelectField
              label={add}
              value={chosen}
              choices={[
                { value: '', label: text.choose },
                ...free.map(({ id, name }) => ({ value: id, label: name })),
              ]}
              onValue={setChosen}
            />
            <Button
              disabled={!free.some(({ id }) => id === chosen)}
              onClick={() => assign([...ids, chosen])}
            >
              {text.assign}
            </Button>
          </div>
        )}
      </div>
    </section>
  )
}
