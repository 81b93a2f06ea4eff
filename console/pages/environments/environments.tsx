/** The page of environments: a list with their states, and a dialog that creates one. */

import { useState } from 'preact/hooks'
import { isolate } from '../../../client/isolate.ts'
import { call } from '../../api/client.ts'
import { useList } from '../../api/query.ts'
import { useRefusal } from '../../api/refusal.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../design/field.tsx'
import { EmptyCard, Listed } from '../../design/listed.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Badge, Failure } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { tagsOfLines } from '../../form/tag-lines.ts'
import { currentUrl, go, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { repositoriesOf, states, stateTones } from './state.ts'
import { environmentsText as text } from './text.ts'

export default function EnvironmentsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/environments`
  const { query } = currentUrl.value
  const status = states.find((one) => one === query.get('status'))
  const destroyed = query.get('destroyed') === '1' || status === 'destroyed'
  const input = {
    project,
    limit: 50,
    ...(status && { status }),
    ...(destroyed && { include_destroyed: true }),
  }
  const list = useList('environment.list', input, { kinds: ['environment'] })
  const allowed = may('project.edit')
  const rows = useRowKeys<HTMLTableElement>()
  const create = (): void => setQuery({ new: '1' }, { push: true })
  return (
    <Page
      title={text.title}
      actions={
        <>
          <CopyCall name="environment.list" input={input} />
          {allowed && <PageAction label={text.create} keys="c" onRun={create} />}
        </>
      }
    >
      <div class="row filters">
        <SelectField
          label={text.state}
          unlabelled
          value={status ?? ''}
          choices={[
            { value: '', label: text.allStates },
            ...states.map((value) => ({ value, label: value })),
          ]}
          onValue={(value) => setQuery({ status: value })}
        />
        <Checkbox
          label={text.destroyedToo}
          checked={destroyed}
          onChecked={(on) => setQuery({ destroyed: on ? '1' : '' })}
        />
      </div>
      <Listed
        of={list}
        lines={6}
        empty={
          <EmptyCard icon="environments" title={status ? text.emptyFiltered : text.empty}>
            {status ? (
              <Button onClick={() => setQuery({ status: '' })}>{text.clear}</Button>
            ) : (
              <>
                <p>{text.emptyHint}</p>
                {allowed && (
                  <Button icon="plus" onClick={create}>
                    {text.create}
                  </Button>
                )}
              </>
            )}
          </EmptyCard>
        }
      >
        {(environments) => (
          <div class="table-frame">
            <table class="table" ref={rows}>
              <thead>
                <tr>
                  <th scope="col">{text.name}</th>
                  <th scope="col">{text.state}</th>
                  <th scope="col">{text.worker}</th>
                  <th scope="col">{text.provider}</th>
                  <th scope="col">{text.holder}</th>
                  <th scope="col" class="number">
                    {text.jobs}
                  </th>
                  <th scope="col">{text.seen}</th>
                </tr>
              </thead>
              <tbody>
                {environments.map((one) => (
                  <tr key={one.id}>
                    <td class="name">
                      <a
                        class="user-text"
                        {...rowLink}
                        href={`${base}/${encodeURIComponent(one.id)}`}
                      >
                        {one.name}
                      </a>
                    </td>
                    <td>
                      <Badge tone={stateTones[one.status] ?? 'neutral'}>{one.status}</Badge>
                    </td>
                    <td class="soft">{one.worker_state}</td>
                    <td class="soft user-text">{one.provider}</td>
                    <td class="user-text">
                      {one.lease && `${one.lease.holder.kind} ${isolate(one.lease.holder.id)}`}
                    </td>
                    <td class="number">{one.jobs_in_progress ?? 0}</td>
                    <td class="nowrap">
                      {one.last_seen_at && <Time at={one.last_seen_at} relative />}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Listed>
      {query.get('new') === '1' && allowed && (
        <CreateDialog
          project={project}
          base={base}
          providers={[...new Set(list.state.value.items.map(({ provider }) => provider))]}
          onClose={() => setQuery({ new: '' })}
        />
      )}
    </Page>
  )
}

const RETENTIONS = ['manual', 'destroy_on_success', 'retain_on_failure', 'retain_always'] as const
const LIFETIMES = ['run', 'lease', 'explicit'] as const

function CreateDialog({
  project,
  base,
  providers,
  onClose,
}: {
  readonly project: string
  readonly base: string
  readonly providers: readonly string[]
  readonly onClose: () => void
}) {
  const [name, setName] = useState('')
  const [provider, setProvider] = useState('')
  const [retention, setRetention] = useState('')
  const [lifetime, setLifetime] = useState('')
  const [scope, setScope] = useState(false)
  const [repositories, setRepositories] = useState('')
  const [tags, setTags] = useState('')
  const { attempt, errorBeside, faultOf } = useRefusal()
  const create = async (): Promise<void> => {
    const retention_policy = RETENTIONS.find((one) => one === retention)
    const chosen = LIFETIMES.find((one) => one === lifetime)
    const declared = repositoriesOf(repositories)
    await attempt(async () => {
      const { id } = await call('environment.create', {
        project,
        ...(name !== '' && { name }),
        ...(provider !== '' && { provider }),
        ...(retention_policy && { retention_policy }),
        ...(chosen && { lifetime: chosen }),
        ...(scope && { scope: 'owner' as const }),
        ...(declared.length > 0 && { repositories: declared }),
        ...(tags.trim() !== '' && { tags: tagsOfLines(tags) }),
      })
      go(`${base}/${id}`)
    })
  }
  const remaining = errorBeside(
    'name',
    'provider',
    'retention_policy',
    'lifetime',
    'repositories',
    'tags',
  )
  return (
    <Dialog title={text.create} onClose={onClose}>
      <form class="stack" onSubmit={(event) => event.preventDefault()}>
        <TextField
          label={text.name}
          hint={text.nameHint}
          value={name}
          onValue={setName}
          fault={faultOf('name')}
          maxLength={63}
        />
        <TextField
          label={text.provider}
          hint={text.providerHint}
          value={provider}
          onValue={setProvider}
          fault={faultOf('provider')}
          list="environment-providers"
        />
        <datalist id="environment-providers">
          {providers.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
        <SelectField
          label={text.retention}
          value={retention}
          fault={faultOf('retention_policy')}
          choices={[
            { value: '', label: text.standard },
            ...RETENTIONS.map((value) => ({ value, label: text[value] })),
          ]}
          onValue={setRetention}
        />
        <SelectField
          label={text.lifetime}
          value={lifetime}
          fault={faultOf('lifetime')}
          choices={[
            { value: '', label: text.standard },
            ...LIFETIMES.map((value) => ({ value, label: text[value] })),
          ]}
          onValue={setLifetime}
        />
        <TextArea
          label={text.repositories}
          hint={text.repositoriesHint}
          value={repositories}
          onValue={setRepositories}
          fault={faultOf('repositories')}
          rows={2}
        />
        <TextArea
          label={text.tags}
          hint={text.tagsHint}
          value={tags}
          onValue={setTags}
          fault={faultOf('tags')}
          rows={2}
        />
        <Checkbox label={text.scope} checked={scope} onChecked={setScope} />
        {remaining && <Failure error={remaining} />}
        <DialogActions onClose={onClose} action={text.create} submit onClick={create} />
      </form>
    </Dialog>
  )
}
