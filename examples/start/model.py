"""A scikit-learn model and what it answers, sent to plumbline: python model.py http://127.0.0.1:8080

It reads images of digits with a naive Bayes classifier, which is known to be far too sure of itself.
"""
import sys
import time
import uuid

from plumbline import PlumblineLogger
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

images, digits = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(images, digits, test_size=0.5, random_state=1)
model = GaussianNB().fit(train, y_train)

logger = PlumblineLogger("digits", version="1", to=sys.argv[1])
for start in range(0, len(test), 10):  # as requests of a server
    rows = slice(start, start + 10)
    probs = model.predict_proba(test[rows])
    ids = [uuid.uuid4().hex for _ in probs]
    logger.log(ids, probs=probs)
    logger.label(ids, y_test[rows])  # elsewhere and later, within join.wait (1h; months are possible)
    time.sleep(0.3)
print(logger.close())
