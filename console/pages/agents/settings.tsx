/**
 * The settings of an agent. Only changed fields are sent, so concurrent changes to other fields are
 * kept. If somebody else has changed the same field, the person decides which value to keep.
 */
import { useEffect, useId, useState } from 'preact/hooks'
import type { CallInput, CallReply } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { useRefusal } from '../../api/refusal.ts'
import { updateIf } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Failure, Notice } from '../../design/states.tsx'
import { Editor } from '../../editor/editor.tsx'
import { Conflict } from '../../form/conflict.tsx'
import { useLeaveQuestion } from '../../form/unsaved.ts'
import { conflictsOf } from '../../form/value.ts'
import { may } from '../../shell/session.ts'
import { agentsText as text } from './text.ts'

export type Agent = CallReply<'agent.get'>
type Changes = Omit<CallInput<'agent.update'>, 'project' | 'id'>

const EFFORTS = [
  { value: 'inherit', label: text.effortInherit },
  ...['low', 'medium', 'high', 'xhigh', 'max'].map((value) => ({ value, label: value })),
]
const PRESENTATIONS = [
  { value: 'meta', label: text.presentationMeta },
  { value: 'flat', label: text.presentationFlat },
]
const MEMORIES = [
  { value: '', label: text.memoryDefault },
  { value: 'index', label: text.memoryIndex },
  { value: 'full', label: text.memoryFull },
  { value: 'off', label: text.memoryOff },
]
const STRATEGIES = [
  { value: 'auto', label: text.compactionAuto },
  { value: 'manual', label: text.compactionManual },
  { value: 'disabled', label: text.compactionOff },
]
const THRESHOLDS = [
  { value: 'xs', label: text.thresholdXs },
  { value: 'sm', label: text.thresholdSm },
  { value: 'md', label: text.thresholdMd },
  { value: 'lg', label: text.thresholdLg },
  { value: 'xl', label: text.thresholdXl },
]

const labels = {
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

/** Shows the form. `onDirty` receives whether there are unsaved changes. */
export function Settings({
  project,
  agent: loaded,
  onSaved,
  onDirty,
}: {
  readonly project: string
  readonly agent: Agent
  readonly onSaved: () => void
  readonly onDirty: (dirty: boolean) => void
}) {
  const [changes, setChanges] = useState<Changes>({})
  /** For each changed field, the stored value at the time when the person began to edit it. */
  const [bases, setBases] = useState<Partial<Agent>>({})
  /** The record of the last save or check, which may be newer than the loaded one. */
  const [seen, setSeen] = useState(loaded)
  const agent = seen.id === loaded.id && seen.updated_at > loaded.updated_at ? seen : loaded
  const conflicts = conflictsOf(changes, bases, agent)
  const { error, attempt, faultOf } = useRefusal()
  const dirty = Object.keys(changes).length > 0
  const mayEdit = may('project.edit')
  useEffect(() => onDirty(dirty), [dirty])
  useLeaveQuestion(dirty)
  const now = { ...agent, ...changes } as Agent
  const change = (more: Changes): void => {
    const next = Object.entries({ ...changes, ...more }).filter(
      ([name, value]) =>
        JSON.stringify(value) !== JSON.stringify(agent[name as keyof Agent] ?? undefined) &&
        !(value === '' && agent[name as keyof Agent] === undefined),
    )
    setBases(
      Object.fromEntries(
        next.map(([name]) => [
          name,
          name in changes ? bases[name as keyof Agent] : agent[name as keyof Agent],
        ]),
      ),
    )
    setChanges(Object.fromEntries(next) as Changes)
  }
  const save = async (): Promise<void> => {
    await attempt(async () => {
      const saved = await updateIf(
        'agent.update',
        { project, id: agent.id, ...changes },
        (stored) => {
          setSeen(stored as Agent)
          return conflictsOf(changes, bases, stored).length === 0
        },
      )
      if (!saved) return
      setSeen(saved)
      setChanges({})
      showDone(text.saved)
      onSaved()
    })
  }
  const { memory_context: memory, compaction_policy: policy } = now
  return (
    <form
      class="stack"
      aria-label={text.settings}
      onSubmit={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 's') return
        if (!mayEdit || event.defaultPrevented) return
        event.preventDefault()
        if (dirty && conflicts.length === 0) void save()
      }}
    >
      <fieldset class="agent-fields stack" disabled={!mayEdit}>
        <div class="grid">
          <TextField
            label={text.name}
            value={now.name}
            maxLength={63}
            fault={faultOf('name')}
            onValue={(name) => change({ name })}
          />
          <TextField
            label={text.description}
            value={now.description ?? ''}
            maxLength={500}
            fault={faultOf('description')}
            onValue={(description) => change({ description })}
          />
        </div>
        <div class="instructions">
          <strong>{text.instructions}</strong>
          <Editor
            label={text.instructions}
            hint={text.instructionsHint}
            language="text"
            value={now.system_prompt ?? ''}
            rows={14}
            readOnly={!mayEdit}
            onValue={(system_prompt) => change({ system_prompt })}
            onSubmit={() => void (dirty && conflicts.length === 0 && save())}
          />
          {faultOf('system_prompt') && <p class="fault">{faultOf('system_prompt')}</p>}
        </div>
        <h2>{text.limits}</h2>
        <ModelFields project={project} now={now} change={change} faultOf={faultOf} />
        <div class="grid">
          <SelectField
            label={text.effort}
            value={now.thinking_effort ?? 'inherit'}
            choices={EFFORTS}
            onValue={(value) =>
              change({ thinking_effort: value as NonNullable<Agent['thinking_effort']> })
            }
          />
          <TextField
            label={text.timeout}
            hint={text.timeoutHint}
            type="number"
            min={0}
            value={String(now.timeout_seconds ?? 0)}
            fault={faultOf('timeout_seconds')}
            onValue={(value) => change({ timeout_seconds: Math.max(0, Math.round(+value)) })}
          />
          <SelectField
            label={text.presentation}
            value={now.tool_presentation ?? 'meta'}
            choices={PRESENTATIONS}
            onValue={(value) => change({ tool_presentation: value as 'flat' | 'meta' })}
          />
          <SelectField
            label={text.memoryContext}
            value={memory?.mode ?? ''}
            choices={MEMORIES}
            onValue={(value) =>
              change({
                memory_context: value === '' ? {} : { mode: value as 'index' | 'full' | 'off' },
              })
            }
          />
          <SelectField
            label={text.compaction}
            value={policy?.strategy === 'none' ? 'disabled' : (policy?.strategy ?? 'auto')}
            choices={STRATEGIES}
            onValue={(value) =>
              change({
                compaction_policy: { ...policy, strategy: value as 'auto' | 'manual' | 'disabled' },
              })
            }
          />
          {(policy?.strategy ?? 'auto') === 'auto' && policy?.threshold_tokens === undefined && (
            <SelectField
              label={text.threshold}
              value={policy?.threshold ?? 'sm'}
              choices={THRESHOLDS}
              fault={faultOf('compaction_policy.threshold')}
              onValue={(value) =>
                change({
                  compaction_policy: { ...policy, threshold: value as 'xs' | 'sm' | 'md' },
                })
              }
            />
          )}
        </div>
      </fieldset>
      {error && <Failure error={error} />}
      {mayEdit && (
        <div class="save-bar stack close">
          {conflicts.length > 0 && (
            <Conflict
              names={conflicts}
              labels={labels}
              long={['system_prompt']}
              changes={changes}
              stored={agent}
              onKeep={() => setBases({ ...agent })}
              onTake={() =>
                setChanges(
                  Object.fromEntries(
                    Object.entries(changes).filter(([name]) => !conflicts.includes(name)),
                  ),
                )
              }
            />
          )}
          <div class="row">
            <Button
              kind="primary"
              submit
              disabled={!dirty || conflicts.length > 0}
              onClick={save}
              shortcut="Control+S"
            >
              {text.save}
            </Button>
            {dirty && (
              <>
                <Button onClick={() => setChanges({})}>{text.discard}</Button>
                <span class="soft" role="status">
                  {text.unsaved}
                </span>
              </>
            )}
          </div>
        </div>
      )}
    </form>
  )
}

/** The fields for the model route of the agent and for its model. */
function ModelFields({
  project,
  now,
  change,
  faultOf,
}: {
  readonly project: string
  readonly now: Agent
  readonly change: (changes: Changes) => void
  readonly faultOf: (field: string) => string | undefined
}) {
  const list = useId()
  const { data: catalog } = useQuery('catalog.models', { project }).state.value
  const { data: workers } = useQuery('catalog.worker_models', { project }, { kinds: ['worker'] })
    .state.value
  const route = now.model_route
  const isWorker = route?.mode === 'worker'
  return (
    <div class="grid">
      <SelectField
        label={text.route}
        value={route?.mode ?? 'managed'}
        choices={[
          { value: 'managed', label: text.routeManaged },
          { value: 'worker', label: text.routeWorker },
        ]}
        fault={faultOf('model_route')}
        onValue={(value) =>
          change({
            model_route:
              value === 'worker'
                ? (workers?.items[0]?.route ?? { mode: 'worker' })
                : { mode: 'managed' },
          })
        }
      />
      {isWorker ? (
        <>
          <TextField
            label={text.provider}
            value={route.provider ?? ''}
            list={`${list}-providers`}
            fault={faultOf('model_route.provider')}
            onValue={(provider) => change({ model_route: { ...route, provider } })}
          />
          <TextField
            label={text.workerModel}
            hint={text.workerHint}
            value={route.model ?? ''}
            list={`${list}-models`}
            fault={faultOf('model_route.model')}
            onValue={(model) => change({ model_route: { ...route, model } })}
          />
          <datalist id={`${list}-providers`}>
            {[...new Set(workers?.items.map(({ provider }) => provider))].map((provider) => (
              <option key={provider} value={provider} />
            ))}
          </datalist>
          <datalist id={`${list}-models`}>
            {workers?.items.map(({ provider, model }) => (
              <option key={`${provider}/${model}`} value={model} />
            ))}
          </datalist>
        </>
      ) : (
        <>
          <TextField
            label={text.model}
            hint={text.modelHint}
            placeholder={catalog?.default_model ?? ''}
            value={now.model ?? ''}
            list={`${list}-catalog`}
            fault={faultOf('model')}
            onValue={(model) => change({ model })}
          />
          <datalist id={`${list}-catalog`}>
            {catalog?.items.flatMap(({ provider, models }) =>
              models.map(({ id, label }) => (
                <option key={`${provider}/${id}`} value={`${provider}/${id}`}>
                  {label}
                </option>
              )),
            )}
          </datalist>
          {catalog?.reason !== undefined && <Notice tone="warn">{text.modelReason}</Notice>}
        </>
      )}
    </div>
  )
}
