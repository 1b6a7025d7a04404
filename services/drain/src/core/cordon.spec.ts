import { CORDON_ANNOTATION, KEEP_CORDONED_ANNOTATION, UNCORDONED_ANNOTATION } from '#libs/contracts';
import { cordonWrite, uncordonWrite, wasTakenOff, type NodeCordon, type NodeWrite } from './index.js';

/** A Node that writes and people change, as the API server would have it. */
class Node implements NodeCordon {
  unschedulable = false;
  setBySluice = true;
  annotations: Record<string, string> = {};

  person(unschedulable: boolean): this {
    if (this.unschedulable !== unschedulable) this.setBySluice = false;
    this.unschedulable = unschedulable;
    return this;
  }
  cordon(lease: string): this {
    return this.write(cordonWrite(this, lease));
  }
  uncordon(lease: string): this {
    return this.write(uncordonWrite(this, lease));
  }
  private write(write: NodeWrite | undefined): this {
    if (write?.unschedulable !== undefined && write.unschedulable !== this.unschedulable) {
      this.unschedulable = write.unschedulable;
      this.setBySluice = true;
    }
    for (const [key, value] of Object.entries(write?.annotations ?? {})) {
      if (value === null) delete this.annotations[key];
      else this.annotations[key] = value;
    }
    return this;
  }
}

describe('the cordon of a Node', () => {
  it('is put on in the name of the lease, and taken off by it', () => {
    const node = new Node().cordon('l1');
    expect(node).toMatchObject({
      unschedulable: true,
      annotations: { [CORDON_ANNOTATION]: '{"lease":"l1","alreadyCordoned":false}' },
    });
    expect(cordonWrite(node, 'l1')).toBeUndefined();
    expect(node.uncordon('l1')).toMatchObject({ unschedulable: false, annotations: { [UNCORDONED_ANNOTATION]: 'l1' } });
    expect(node.annotations[CORDON_ANNOTATION]).toBeUndefined();
  });

  it('is left on where a person had put it on before (MCO #4475)', () => {
    const node = new Node().person(true).cordon('l1');
    expect(node.annotations[CORDON_ANNOTATION]).toBe('{"lease":"l1","alreadyCordoned":true}');
    expect(node.uncordon('l1')).toMatchObject({ unschedulable: true, annotations: { [UNCORDONED_ANNOTATION]: 'l1' } });
  });

  it('is left on where a person took it off and put on their own in the meantime', () => {
    expect(new Node().cordon('l1').person(false).person(true).uncordon('l1').unschedulable).toBe(true);
  });

  it('is left on where a person asks for that', () => {
    const node = new Node().cordon('l1');
    node.annotations[KEEP_CORDONED_ANNOTATION] = 'a broken fan';
    expect(node.uncordon('l1').unschedulable).toBe(true);
    expect(node.annotations[CORDON_ANNOTATION]).toBeUndefined();
  });

  it("is seen to be taken off by somebody, and is put back as Sluice's own (MCO #6028, #5281)", () => {
    const node = new Node().cordon('l1').person(false);
    expect(wasTakenOff(node, 'l1')).toBe(true);
    expect(wasTakenOff(node, 'l2')).toBe(false);
    expect(node.cordon('l1').unschedulable).toBe(true);
    expect(node.uncordon('l1').unschedulable).toBe(false);
  });

  it('that somebody took off for good is not put on by giving the Node back', () => {
    expect(new Node().cordon('l1').person(false).uncordon('l1').unschedulable).toBe(false);
  });

  it("that was put on after the Node was given back is somebody else's", () => {
    expect(uncordonWrite(new Node().cordon('l1').uncordon('l1').person(true), 'l1')).toBeUndefined();
  });

  it('giving back always writes, so that who looked before it loses; twice it writes once', () => {
    const node = new Node();
    expect(uncordonWrite(node, 'l1')).toEqual({ annotations: { [UNCORDONED_ANNOTATION]: 'l1' } });
    expect(uncordonWrite(node.uncordon('l1'), 'l1')).toBeUndefined();
    expect(uncordonWrite(node, 'l2')).toEqual({ annotations: { [UNCORDONED_ANNOTATION]: 'l2' } });
  });

  it('of an earlier lease is taken over with what it says, and is not given back by the earlier one', () => {
    const ours = new Node().cordon('l1').cordon('l2');
    expect(ours.uncordon('l1').unschedulable).toBe(true);
    expect(ours.uncordon('l2').unschedulable).toBe(false);
    const found = new Node().person(true).cordon('l1').cordon('l2');
    expect(found.uncordon('l2').unschedulable).toBe(true);
  });

  it("with a mark that cannot be read is somebody else's", () => {
    const node = new Node().person(true);
    node.annotations[CORDON_ANNOTATION] = 'yes';
    expect(node.cordon('l1').uncordon('l1').unschedulable).toBe(true);
  });
});
