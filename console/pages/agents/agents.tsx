/** The page with the list of agents, and the dialog that creates one. */
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useRefusal } from '../../api/refusal.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { SearchField, TextField } from '../../design/field.tsx'
import { EmptyCard } from '../../design/listed.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Badge, Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, go, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { useAgents } from '../sessions/agents.ts'
import { agentsText as text } from './text.ts'

export default function AgentsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}`
  const { agents, loaded, error, reload } = useAgents(project)
  const { query } = currentUrl.value
  const wanted = query.get('q') ?? ''
  const table = useRowKeys<HTMLTableElement>()
  const mayEdit = may('project.edit')
  const create = (): void => setQuery({ new: '1' })
  const words = wanted.trim().toLowerCase()
  const shown = agents.filter(({ name, description = '' }) =>
    `${name} ${description}`.toLowerCase().includes(words),
  )
  return (
    <Page
      title={text.title}
      actions={
        <>
          <CopyCall name="agent.list" input={{ project }} />
          {mayEdit && <PageAction label={text.create} keys="c" onRun={create} />}
        </>
      }
    >
      {agents.length > 0 && (
        <div class="row session-filters">
          <SearchField label={text.search} value={wanted} onValue={(q) => setQuery({ q })} />
        </div>
      )}
      {error && <Failure error={error} retry={reload} />}
      {!loaded && <Skeleton lines={6} />}
      {loaded &&
        !error &&
        shown.length === 0 &&
        (agents.length === 0 ? (
          <EmptyCard icon="agents" title={text.first}>
            <p>{text.firstHint}</p>
            {mayEdit && <Button onClick={create}>{text.create}</Button>}
          </EmptyCard>
        ) : (
          <EmptyCard icon="search" title={text.none} />
        ))}
      {shown.length > 0 && (
        <div class="table-frame">
          <table class="table" ref={table}>
            <thead>
              <tr>
                <th scope="col">{text.name}</th>
                <th scope="col" class="wide-cell">
                  {text.description}
                </th>
                <th scope="col">{text.model}</th>
                <th scope="col" class="wide-cell">
                  {text.changed}
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map(({ id, name, description, model, status, updated_at }) => (
                <tr key={id}>
                  <td>
                    <a {...rowLink} class="user-text row-link" href={`${base}/agents/${id}`}>
                      {name}
                    </a>{' '}
                    {status === 'inactive' && <Badge>{text.inactive}</Badge>}
                  </td>
                  <td class="user-text wide-cell">{description}</td>
                  <td class="user-text">
                    {model || <span class="soft">{text.modelDefault}</span>}
                  </td>
                  <td class="wide-cell">
                    <Time at={updated_at} relative />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {query.get('new') === '1' && mayEdit && (
        <NewAgent project={project} onClose={() => setQuery({ new: '' })} />
      )}
    </Page>
  )
}

function NewAgent({
  project,
  onClose,
}: {
  readonly project: string
  readonly onClose: () => void
}) {
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const { attempt, errorBeside, faultOf } = useRefusal()
  const create = async (): Promise<void> => {
    await attempt(async () => {
      const { id } = await call('agent.create', {
        project,
        name: name.trim(),
        ...(description.trim() !== '' && { description: description.trim() }),
      })
      go(`/p/${encodeURIComponent(project)}/agents/${id}`)
    })
  }
  const remaining = errorBeside('name', 'description')
  return (
    <Dialog title={text.create} onClose={onClose}>
      <form class="stack" onSubmit={(event) => event.preventDefault()}>
        <TextField
          label={text.name}
          value={name}
          maxLength={63}
          required
          fault={faultOf('name')}
          onValue={setName}
        />
        <TextField
          label={text.description}
          hint={text.createHint}
          value={description}
          maxLength={500}
          fault={faultOf('description')}
          onValue={setDescription}
        />
        {remaining && <Failure error={remaining} />}
        <DialogActions
          onClose={onClose}
          action={text.createAction}
          submit
          disabled={name.trim() === ''}
          onClick={create}
        />
      </form>
    </Dialog>
  )
}
