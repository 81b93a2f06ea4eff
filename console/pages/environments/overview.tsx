/** The details of an environment: its owner, its worker, its exclusive use and its repositories. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { isolate } from '../../../client/isolate.ts'
import type { CallReply } from '../../api/client.ts'
import { useRefusal } from '../../api/refusal.ts'
import { useSave } from '../../api/save.ts'
import { Checkbox, TextArea } from '../../design/field.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Badge, Failure } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { tagLines, tagsOfLines } from '../../form/tag-lines.ts'
import { useChanged } from '../../form/unsaved.ts'
import { Who } from '../../people/who.tsx'
import { stateTones } from './state.ts'
import { environmentsText as text } from './text.ts'

export type Environment = CallReply<'environment.get'>

const Fact = ({
  name,
  children,
}: {
  readonly name: string
  readonly children: ComponentChildren
}) =>
  children === undefined || children === null || children === '' ? null : (
    <>
      <dt>{name}</dt>
      <dd class="user-text">{children}</dd>
    </>
  )

/** A link to the page of a record. */
const Linked = ({ href, id }: { readonly href: string; readonly id: string }) => (
  <a class="mono" href={`${href}/${encodeURIComponent(id)}`}>
    {id}
  </a>
)

export function Overview({
  of,
  base,
  project,
}: {
  readonly of: Environment
  readonly base: string
  readonly project: string
}) {
  const { lease, repositories = [], tags = {} } = of
  return (
    <div class="environment">
      <section class="card">
        <header>
          <h2>{text.details}</h2>
        </header>
        <dl class="facts body">
          <Fact name={text.id}>
            <span class="mono">{of.id}</span>
          </Fact>
          <Fact name={text.provider}>{of.provider}</Fact>
          <Fact name={text.worker}>
            {of.worker_state && (
              <Badge tone={stateTones[of.worker_state] ?? 'neutral'}>{of.worker_state}</Badge>
            )}
          </Fact>
          <Fact name={text.session}>{of.current_worker_session_id}</Fact>
          <Fact name={text.jobs}>{of.jobs_in_progress}</Fact>
          <Fact name={text.mode}>{of.mode}</Fact>
          <Fact name={text.ofRun}>
            {of.run_id && <Linked href={`${base}/runs`} id={of.run_id} />}
          </Fact>
          <Fact name={text.ofAgent}>
            {of.agent_id && <Linked href={`${base}/agents`} id={of.agent_id} />}
          </Fact>
          <Fact name={text.ofLoop}>
            {of.loop_id && <Linked href={`${base}/loops`} id={of.loop_id} />}
          </Fact>
          <Fact name={text.owner}>{of.owned_by && <Who project={project} id={of.owned_by} />}</Fact>
          <Fact name={text.retention}>{text[of.retention_policy]}</Fact>
          <Fact name={text.lifetime}>{text[of.lifetime]}</Fact>
          <Fact name={text.cleanup}>{of.cleanup_status}</Fact>
          <Fact name={text.place}>{of.place}</Fact>
          <Fact name={text.isolation}>{of.isolation}</Fact>
          <Fact name={text.tags}>
            {Object.keys(tags).length > 0 && (
              <span class="row">
                {Object.entries(tags).map(([key, value]) => (
                  <Badge key={key}>
                    {key}={value}
                  </Badge>
                ))}
              </span>
            )}
          </Fact>
          <Fact name={text.seen}>{of.last_seen_at && <Time at={of.last_seen_at} relative />}</Fact>
          <Fact name={text.created}>
            <Time at={of.created_at} />
          </Fact>
          <Fact name={text.updated}>
            <Time at={of.updated_at} />
          </Fact>
        </dl>
      </section>
      <div class="stack">
        <section class="card">
          <header>
            <h2>{text.leaseTitle}</h2>
          </header>
          {lease ? (
            <dl class="facts body">
              <Fact name={text.holder}>
                {lease.holder.kind} {isolate(lease.holder.id)}
              </Fact>
              <Fact name={text.leaseSince}>
                <Time at={lease.acquired_at} />
              </Fact>
              <Fact name={text.leaseUntil}>
                <Time at={lease.expires_at} relative />
              </Fact>
            </dl>
          ) : (
            <p class="body soft">{text.noLease}</p>
          )}
        </section>
        <section class="card">
          <header>
            <h2>{text.repositories}</h2>
          </header>
          {repositories.length === 0 ? (
            <p class="body soft">{text.noRepositories}</p>
          ) : (
            <ul class="body stack close">
              {repositories.map(({ full_name, push, provider }) => (
                <li key={full_name} class="row">
                  <span class="mono user-text">{full_name}</span>
                  {provider && <span class="soft user-text">{provider}</span>}
                  {push && <Badge>{text.push}</Badge>}
                </li>
              ))}
            </ul>
          )}
        </section>
      </div>
    </div>
  )
}

/** The dialog that changes the tags and the scope. */
export function EditDialog({
  project,
  environment,
  onClose,
}: {
  readonly project: string
  readonly environment: Environment
  readonly onClose: () => void
}) {
  const [tags, setTags] = useState(tagLines(environment.tags))
  const [scope, setScope] = useState(environment.scope === 'owner')
  const { error, attempt } = useRefusal()
  const update = useSave(environment)
  const { isChanged } = useChanged([tags, scope])
  const save = async (): Promise<void> => {
    await attempt(async () => {
      await update('environment.update', {
        project,
        environment_id: environment.id,
        tags: tagsOfLines(tags),
        ...(scope !== (environment.scope === 'owner') && { scope: scope ? 'owner' : null }),
      })
      onClose()
    })
  }
  return (
    <Dialog title={text.edit} onClose={onClose}>
      <TextArea label={text.tags} hint={text.tagsHint} value={tags} onValue={setTags} rows={3} />
      <Checkbox label={text.scope} checked={scope} onChecked={setScope} />
      {error && <Failure error={error} />}
      <DialogActions onClose={onClose} action={text.save} disabled={!isChanged} onClick={save} />
    </Dialog>
  )
}
