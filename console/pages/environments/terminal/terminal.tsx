/** A terminal in an environment. It is closed when the user leaves the page. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { requestOf } from '../../../api/client.ts'
import { Button } from '../../../design/button.tsx'
import { Empty, Notice } from '../../../design/states.tsx'
import { guardLeaving } from '../../../router/router.ts'
import { may } from '../../../shell/session.ts'
import { environmentsText as text } from '../text.ts'
import type { TerminalScreen } from './screen.ts'

const PERMISSION = 'actions.execute.environment.bash'
type State =
  | { readonly is: 'closed' }
  | { readonly is: 'opening' | 'open' }
  | { readonly is: 'ended'; readonly reason: string }

/**
 * Shows a terminal, which is opened on request.
 * @param props.hidden whether another tab is shown. The terminal stays open in the meantime.
 */
export function TerminalPart({
  project,
  id,
  hidden,
}: {
  readonly project: string
  readonly id: string
  readonly hidden: boolean
}) {
  const [state, setState] = useState<State>({ is: 'closed' })
  const [reader, setReader] = useState(false)
  const frame = useRef<HTMLDivElement>(null)
  const controls = useRef<HTMLDivElement>(null)
  const screen = useRef<TerminalScreen | undefined>(undefined)
  const live = state.is === 'opening' || state.is === 'open'
  useLayoutEffect(
    () => (live ? guardLeaving(() => text.leaving, { tabs: false }) : undefined),
    [live],
  )
  const close = (): void => {
    screen.current?.close()
    screen.current = undefined
  }
  useEffect(() => close, [])
  useEffect(() => screen.current?.setReader(reader), [reader])
  const open = async (): Promise<void> => {
    close()
    setState({ is: 'opening' })
    const { openScreen } = await import('./screen.ts')
    if (!frame.current) return
    screen.current = openScreen(frame.current, {
      path: requestOf('environment.terminal', { project, environment_id: id }).path,
      reader,
      onOpened: () => setState({ is: 'open' }),
      onEnded: (reason) => setState({ is: 'ended', reason }),
      onLeave: () => controls.current?.querySelector('button')?.focus(),
    })
  }
  const end = (): void => {
    close()
    setState({ is: 'closed' })
  }
  if (!may(PERMISSION))
    return (
      <div hidden={hidden}>
        <Empty icon="keys" title={text.mayNot}>
          <p>{text.mayNotHint(PERMISSION)}</p>
        </Empty>
      </div>
    )
  return (
    <div class="stack close" hidden={hidden}>
      {state.is === 'closed' ? (
        <section class="card">
          <Empty icon="environments" title={text.terminal}>
            <p>{text.terminalHint}</p>
            <Button kind="primary" onClick={open}>
              {text.openTerminal}
            </Button>
          </Empty>
        </section>
      ) : (
        <div class="row apart" ref={controls}>
          <div class="row">
            {live ? (
              <Button icon="stop" onClick={end}>
                {text.end}
              </Button>
            ) : (
              <Button kind="primary" onClick={open}>
                {text.again}
              </Button>
            )}
            <Button kind="quiet" pressed={reader} onClick={() => setReader(!reader)}>
              {text.reader}
            </Button>
          </div>
          <span class="small soft">{text.leaveKeys}</span>
        </div>
      )}
      <div role="status">
        {state.is === 'opening' && <p class="soft">{text.opening}</p>}
        {state.is === 'ended' && <Notice>{state.reason}</Notice>}
      </div>
      <div
        ref={frame}
        class="terminal-frame"
        hidden={state.is === 'closed'}
        role="group"
        aria-label={text.terminal}
      />
    </div>
  )
}
