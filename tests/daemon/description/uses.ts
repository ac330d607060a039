// What an integrator writes over the generated clients, and what their types must not let him write.
import * as api from './integrator'
import * as oracle from './oracle'

export async function quoted(user: string): Promise<string> {
  const answer = await api.postQuoteV2({
    user,
    originChainId: 8453,
    destinationChainId: '0xa4b1',
    originCurrency: user,
    destinationCurrency: user,
    amount: '100000000000000000',
    tradeType: 'EXACT_INPUT',
  })
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.data.message}`)
  const [step] = answer.data.steps
  const fee: string | undefined = answer.data.fees.relayer?.amountUsd
  return `${step.id} ${toSign(step.items[0].data)} ${answer.data.details.currencyOut.amount} ${fee}`
}

type Quote = Extract<Awaited<ReturnType<typeof api.postQuoteV2>>, { status: 200 }>['data']
type Data = Quote['steps'][number]['items'][number]['data']

// Whatever the origin's wallet takes; there is no fourth shape.
function toSign(data: Data): string {
  if ('psbt' in data) return data.psbt
  if ('instructions' in data) return data.instructions.map((one) => one.programId).join()
  return data.to
}

export async function ended(requestId: string): Promise<boolean> {
  const { status, data } = await api.getIntentsStatusV3(requestId)
  return status === 200 && ['success', 'failure', 'refund'].includes(data.status)
}

export async function signed(chainId: string, transactionId: string): Promise<unknown> {
  const answer = await oracle.postAttestationsDepositoryDepositsV1({ chainId, transactionId })
  return answer.status === 200 ? answer.data.messages : answer.data.docs
}

// @ts-expect-error Not every wallet takes a transaction with a recipient.
export const recipient = (data: Data): string => data.to
// @ts-expect-error A quote needs more than a user.
void api.postQuoteV2({ user: '0x' })
type Body = Parameters<typeof api.postQuoteV2>[0]
// @ts-expect-error There is no such trade.
export const trade: Body['tradeType'] = 'EXACT'
// @ts-expect-error A status is of a request.
void api.getIntentsStatusV3()
