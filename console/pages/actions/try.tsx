/** Calls an action with the input from a form, and shows the result. */
import { useState } from 'preact/hooks'
import { type CallReply, call, type FieldFault } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { Checkbox, TextField } from '../../design/field.tsx'
import { Badge, Notice, type Tone } from '../../design/states.tsx'
import { Tree } from '../../design/tree.tsx'
import { reportFaults } from '../../form/faults.ts'
import { SchemaForm } from '../../form/form.tsx'
import { useForm } from '../../form/state.ts'
import { faultAt, numberOf } from '../../form/value.ts'
import { may } from '../../shell/session.ts'
import { actionsText as text } from './text.ts'
import type { Entry } from './words.tsx'

type Result = CallReply<'action.invoke'> & { readonly checked?: boolean }

const outcomes: Readonly<Record<Result['status'], readonly [string, Tone]>> = {
  active: [text.running, 'info'],
  completed: [text.completed, 'good'],
  failed: [text.failed, 'bad'],
}
function Outcome({ result, project }: { readonly result: Result; readonly project: string }) {
  const [word, tone] = outcomes[result.status]
  return (
    <section class="card" aria-live="polite">
      <header>
        <h2>{text.result}</h2>
        <div class="row">
          <Badge tone={tone}>{word}</Badge>
          {result.run_id && (
            <a href={`/p/${encodeURIComponent(project)}/runs/${result.run_id}`}>{text.openRun}</a>
          )}
        </div>
      </header>
      <div class="body stack close">
        {result.checked && <p>{text.dryRunDone}</p>}
        {result.status === 'active' && <p>{text.active}</p>}
        {result.error && (
          <Notice tone="bad">
            <span class="user-text">{result.error}</span>
          </Notice>
        )}
        {result.output && <Tree value={result.output} open={2} />}
      </div>
    </section>
  )
}

/** Shows the form and the result, or the reason why the caller cannot execute the action. */
export function TryIt({ project, entry }: { readonly project: string; readonly entry: Entry }) {
  const input = useForm(entry.input_schema)
  const [timeout, setTimeoutText] = useState('')
  const [environment, setEnvironment] = useState('')
  const [dryRun, setDryRun] = useState(false)
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const [result, setResult] = useState<Result>()
  const permission = `actions.execute.${entry.name}`
  if (entry.endpoint_kind === 'builtin') return <Notice>{text.agentsOnly}</Notice>
  if (!may(permission)) return <Notice>{text.mayNot(permission)}</Notice>
  const seconds = numberOf(timeout)
  const request = {
    project,
    action_name: entry.name,
    input: input.value as Record<string, unknown>,
    ...(seconds !== undefined && { timeout_seconds: seconds as number }),
    ...(environment.trim() !== '' && { environment_id: environment.trim() }),
    ...(dryRun && { dry_run: true }),
  }
  const invoke = async (): Promise<void> => {
    setFaults([])
    if (!input.take()) return
    setResult(undefined)
    try {
      const answer = await call('action.invoke', request)
      setResult({ ...answer, ...(dryRun && { checked: true }) })
    } catch (error) {
      reportFaults(error, /^(input|timeout_seconds|environment_id)\b/, (found) => {
        input.report(found, 'input')
        setFaults(found)
      })
    }
  }
  return (
    <div class="pair">
      <form class="stack settings" noValidate onSubmit={(event) => event.preventDefault()}>
        <SchemaForm form={input} label={text.input} />
        <TextField
          label={text.timeout}
          hint={text.timeoutHint}
          placeholder="30"
          value={timeout}
          fault={faultAt(faults, 'timeout_seconds')}
          onValue={setTimeoutText}
        />
        {entry.name.startsWith('environment.') && (
          <TextField
            label={text.environment}
            hint={text.environmentHint}
            value={environment}
            fault={faultAt(faults, 'environment_id')}
            onValue={setEnvironment}
          />
        )}
        {entry.annotations.read_only && (
          <Checkbox label={text.dryRun} checked={dryRun} onChecked={setDryRun} />
        )}
        <div class="row">
          <Button kind="primary" submit icon="start" onClick={invoke}>
            {text.invoke}
          </Button>
          <CopyCall name="action.invoke" input={request} />
        </div>
      </form>
      {result && <Outcome result={result} project={project} />}
    </div>
  )
}
